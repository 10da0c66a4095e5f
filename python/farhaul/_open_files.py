"""Open files of the file system: for programs that wait, and for tasks."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import io
import itertools
import os
import secrets
import sys
import tarfile
import threading
import warnings
import zipfile
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakValueDictionary

from fsspec.asyn import AbstractAsyncStreamedFile  # type: ignore[import-untyped]
from fsspec.spec import AbstractBufferedFile  # type: ignore[import-untyped]

from ._errors import Error, IsADirectoryError
from ._farhaul import OnDrop, RemoteWriter, _has_ended
from ._parquet import Table
from ._read_ahead import ReadAhead
from ._versions import OpenVersion, version_of

if TYPE_CHECKING:
    from .fsspec import FarhaulFileSystem

BLOCK = 4 << 20
"""Bytes that a file which is written keeps before it sends them."""
_READ_FROM_THE_END = (".parquet", ".parq", ".pq", ".arrow", ".feather", ".orc", ".zip")
"""Names of formats whose readers begin with the end of the file. It is requested when the file is opened."""
_TAIL = 64 << 10
"""Bytes of that end: what pyarrow reads first."""
_HANDLED = "_farhaul_files"
"""Attribute of an exception: the numbers of the files that were opened while it was handled."""
_OPENING = 60.0
"""Seconds until a file that is written gets a place among those of the connection."""


class _Ending(AbstractBufferedFile):  # type: ignore[misc]
    """A file that has its end beside its attributes, which another object inherits."""

    __slots__ = ("_on_drop",)
    _on_drop: OnDrop


class _Sized:
    """A file that is read, and whose size is that of the version which the first read finds."""

    opened: OpenVersion | None = None
    size: Any
    cache: Any

    def seek(self, loc: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_END and self.opened is not None:
            self.opened.is_new = False
        return super().seek(loc, whence)  # type: ignore[misc,no-any-return]

    def _has_another_size(self) -> bool:
        if self.opened is None or self.opened.size == self.size:
            return False
        self.size = self.cache.size = self.opened.size
        return True


class FarhaulFile(_Sized, _Ending):
    """A file that is read ahead, or written in pieces.

    A file that is written appears whole, or not at all. An exception in its ``with`` block gives it up.

    Wrappers such as those of gzip, ZIP files and text do not close the file that they were given: they drop it. So a file that nobody
    closed is closed when it is dropped, as those of fsspec are, and at the end of the program. Under an exception it is given up, with a
    `ResourceWarning`.
    """

    DEFAULTBLOCK_SIZE = BLOCK

    def __init__(
        self,
        fs: FarhaulFileSystem,
        path: str,
        mode: str = "rb",
        block_size: int = BLOCK,
        autocommit: bool = True,
        cache_type: str = ReadAhead.name,
        **kwargs: Any,
    ) -> None:
        if mode == "ab":
            raise NotImplementedError("the server does not append: write the file again, or further files beside it")
        self._writer: RemoteWriter | None = None
        self._number = next(_numbers)
        self._process = os.getpid()
        # An exception that somebody handles already, while the file is opened, does not end it. It is marked, because to keep it would
        # keep the frames that it went through, and with them this file.
        if (handled := sys.exception()) is not None:
            vars(handled).setdefault(_HANDLED, set()).add(self._number)
        # Nor does one that ended an earlier statement of an interactive session.
        self._earlier = getattr(sys, "last_value", None)
        # In a transaction, a file waits under another name.
        self._temporary: str | None = None
        if mode != "rb" and not autocommit:
            folder, _, name = path.rpartition("/")
            self._temporary = f"{folder}/.{name[:200]}.{secrets.token_hex(4)}.tmp"

        reads_ahead = mode == "rb" and cache_type == ReadAhead.name
        tail: Future[bytes] | None = None
        if mode == "rb":
            path = fs._strip_protocol(path)
            details, tail = self._details_of(fs, path, reads_ahead)
            kwargs["size"] = details["size"]
            self.opened = open_version(fs, path, details)
            # Other caches may have kept what belongs to the size.
            self.opened.is_new &= reads_ahead
        super().__init__(fs, path, mode, block_size, autocommit, cache_type=cache_type, **kwargs)
        if mode == "rb":
            self._details = details
        else:
            _written[self._number] = self
        if reads_ahead:
            self._read_ahead(self.cache, tail)

    @property
    def buffer(self) -> Any:
        """The bytes that are not sent yet; `None` for a file that was closed, or is read."""
        return _buffers.get(self._number)

    @buffer.setter
    def buffer(self, buffer: io.BytesIO) -> None:
        _buffers[self._number] = buffer

    @property
    def closed(self) -> bool:
        return getattr(self, "_closed", True)

    @closed.setter
    def closed(self, is_closed: bool) -> None:
        self._closed = is_closed
        if is_closed:
            _buffers.pop(self._number, None)

    def __repr__(self) -> str:
        return _shown(self)

    __str__ = __repr__

    def _details_of(self, fs: FarhaulFileSystem, path: str, reads_ahead: bool) -> tuple[dict[str, Any], Future[bytes] | None]:
        """The properties of a file that is opened for reading, and perhaps the request for its end.

        Other files than tables may grow while they are read, so nothing that was said before counts.
        """
        if not _is_read_from_the_end(path):
            return fs._sync(fs._info_now, path), None
        if reads_ahead and not fs._tables.has(path):
            return fs._sync(fs._info_and_tail, path, _TAIL)  # type: ignore[no-any-return]
        recent = fs._recent.get(path)
        if recent is None:
            return fs._sync(fs._info_now, path), None
        return recent, None

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self.fs._sync(self._fetch, start, end)  # type: ignore[no-any-return]

    async def _fetch(self, start: int, end: int) -> bytes:
        assert self.opened is not None
        return await self.opened.part(start, end)

    def read(self, length: int | None = -1) -> bytes:
        content: bytes = super().read(length)
        if self._has_another_size() and (length is None or length < 0):
            content += super().read()
        return content

    def _read_ahead(self, cache: ReadAhead, tail: Future[bytes] | None) -> None:
        fs, path, version = self.fs, self.path, version_of(self.details)
        cache.asks(lambda start, end: asyncio.run_coroutine_threadsafe(self._fetch(start, end), fs.loop))
        cache.on_table = lambda tail, columns: fs._tables.remember(path, Table(version, tail, columns))
        if (table := fs._tables.get(path, version)) is not None:
            cache.has(table.tail, table.columns)
        elif tail is not None:
            cache.has_asked(max(self.size - _TAIL, 0), self.size, tail)

    def _initiate_upload(self) -> None:
        place = self.fs._service_path(self._temporary or self.path)
        replace = self.mode != "xb" or self._temporary is not None

        async def create() -> RemoteWriter:
            try:
                async with asyncio.timeout(_OPENING) as waiting:
                    writer: RemoteWriter = await self.fs._remote().create(place, replace=replace)
                    return writer
            except TimeoutError:
                # Another one is that of a host which does not answer.
                if not waiting.expired():
                    raise
                raise Error(
                    "BUSY",
                    f"{self.path} cannot be written: as many files as a connection carries, 32 (8 with an older server), are open",
                    "close one of them",
                ) from None

        self._writer = self.fs._sync(create)

    def _upload_chunk(self, final: bool = False) -> bool:
        writer = self._writer
        if writer is None:
            raise ValueError("I/O operation on a file that was given up")
        content = self.buffer.getbuffer()
        sending: list[asyncio.Task[Any] | None] = []

        async def send() -> None:
            sending.append(asyncio.current_task())
            if self._writer is not writer:
                # It was given up before this began.
                return
            if len(content):
                await writer.write(content)
            if final:
                with self.fs._recent.changing():
                    await writer.finish()

        try:
            self.fs._sync(send)
        except BaseException:
            # Ctrl-C ends the wait alone.
            for task in filter(None, sending):
                self.fs.loop.call_soon_threadsafe(task.cancel)
            self._give_up()
            raise
        finally:
            # A write that is being cancelled has it for a moment longer.
            with contextlib.suppress(BufferError):
                content.release()
        if final:
            self._writer = None
        return True

    def _give_up(self) -> None:
        writer, self._writer = self._writer, None
        # That of a parent process goes on.
        if writer is not None and self._process == os.getpid():
            writer.discard()

    def commit(self) -> None:
        """Gives the file of a transaction its name."""
        if self._temporary is not None:
            # A wrapper may have left it open.
            self.close()
            temporary, self._temporary = self._temporary, None
            remote, names = self.fs._remote(), (self.fs._service_path(temporary), self.fs._service_path(self.path))
            with self.fs._recent.changing():
                self.fs._sync(_awaited, remote.rename, *names, self.mode != "xb")

    def discard(self) -> None:
        """Gives the file up. Nothing of it stays."""
        self._give_up()
        temporary, self._temporary = self._temporary, None
        if temporary is not None and self.fs.exists(temporary):
            self.fs.rm_file(temporary)
        if self.mode != "rb":
            self.forced = True
            self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None and self.mode != "rb":
            self.discard()
        self.close()

    def __del__(self) -> None:
        if self.closed:
            return
        if self.mode == "rb":
            try:
                _warn_unclosed(self)
            finally:
                self.close()
            return
        # Wrappers in the same cycle of references may write until their own end, and whether an exception is on its way is hidden here.
        # So all is decided when nothing is left of this object but its attributes.
        self._on_drop = OnDrop(functools.partial(_inherit, type(self), self.__dict__))

    def _dropped(self, is_failing: bool) -> None:
        """Nobody has the file any more, and perhaps because an exception is on its way."""
        handled = sys.exception()
        if self.closed or self.buffer is None:
            return
        if self._process != os.getpid():
            # It is the parent's.
            self._abandon()
        elif self._temporary is not None:
            self._abandon("nobody can commit it any more")
        elif is_failing or (handled is not None and self._number not in getattr(handled, _HANDLED, ())):
            self._abandon("an exception ended its writer")
        elif sys.is_finalizing() or _has_ended():
            self._abandon("the interpreter ended before")
        else:
            try:
                # It may be an error, by the program's settings.
                _warn_unclosed(self)
            finally:
                if self.fs.loop is _running_loop():
                    # This thread must not wait for its own loop.
                    threading.Thread(target=self.close, name="close").start()
                else:
                    self.close()

    def _abandon(self, why: str = "") -> None:
        self._give_up()
        self.forced = True
        self.closed = True
        if why:
            warnings.warn(f"{self.path} was not closed, and is given up: {why}", ResourceWarning, stacklevel=2)


_numbers = itertools.count()
_written: WeakValueDictionary[int, FarhaulFile] = WeakValueDictionary()
"""The files that are written, by their numbers."""
_buffers: dict[int, io.BytesIO] = {}
"""Their buffers. In a cycle of references, a buffer would be finalized, and so closed, before its file."""


def _inherit(kind: type[FarhaulFile], attributes: dict[str, Any], is_failing: bool) -> None:
    """Ends what a dropped file has left."""
    file = kind.__new__(kind)
    file.__dict__.update(attributes)
    file._dropped(is_failing)


def close_written() -> None:
    """Closes the files that nobody has closed, at the end of the program. If an exception ended it, they are given up."""
    last = getattr(sys, "last_value", None)
    with contextlib.ExitStack() as stack:
        for file in list(_written.values()):
            if not file.closed and file._process == os.getpid() and file._temporary is None:
                stack.callback(_end, file, last is not None and last is not file._earlier)


def _end(file: FarhaulFile, is_failing: bool) -> None:
    """Closes a file, after what it is wrapped in, which may have more to write."""
    if is_failing:
        file._abandon("an exception ended the program")
        return
    outermost: Any = file
    seen = {id(file)}
    while (wrapper := _wrapper_of(outermost)) is not None and id(wrapper) not in seen:
        seen.add(id(wrapper))
        outermost = wrapper
    try:
        outermost.close()
    finally:
        file.close()


def _wrapper_of(file: Any) -> Any:
    """An object that writes to this one; `None` if there is none."""
    for referrer in gc.get_referrers(file):
        for owner in gc.get_referrers(referrer) if isinstance(referrer, dict) else (referrer,):
            if isinstance(owner, (io.IOBase, zipfile.ZipFile, tarfile.TarFile)) and owner is not file:
                return owner
    return None


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class FarhaulStreamedFile(_Sized, AbstractAsyncStreamedFile):  # type: ignore[misc]
    """A file for tasks. One that is written appears with `close`, and an exception in its ``async with`` block gives it up."""

    _writer: RemoteWriter | None = None

    def __repr__(self) -> str:
        return _shown(self)

    __str__ = __repr__

    async def read(self, length: int | None = -1) -> bytes:
        content: bytes = await super().read(length)
        if self._has_another_size() and (length is None or length < 0):
            content += await super().read()
        return content

    async def _fetch_range(self, start: int, end: int) -> bytes:
        assert self.opened is not None
        return await self.opened.part(start, end)

    async def _initiate_upload(self) -> None:
        self._writer = await self.fs._remote().create(self.fs._service_path(self.path), replace=True)

    async def _upload_chunk(self, final: bool = False) -> bool:
        assert self._writer is not None
        if content := self.buffer.getvalue():
            await self._writer.write(content)
        if final:
            with self.fs._recent.changing():
                await self._writer.finish()
        return True

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None and self.mode != "rb":
            if self._writer is not None:
                self._writer.discard()
            self.closed = True
        await self.close()

    def __del__(self) -> None:
        """A coroutine cannot be awaited here: what was not closed is given up with its writer."""
        if not self.closed and self.mode != "rb":
            self.closed = True
            warnings.warn(
                f"{self.path} was not closed, and is given up: nothing can be awaited any more", ResourceWarning, stacklevel=2
            )


def _shown(file: FarhaulFile | FarhaulStreamedFile) -> str:
    """The kind of a file, its URL, its mode, and whether it is closed."""
    closed = ", closed" if file.closed else ""
    return f"<farhaul.{type(file).__name__} {file.fs.unstrip_protocol(file.path)}, {file.mode}{closed}>"


def _warn_unclosed(file: FarhaulFile) -> None:
    warnings.warn(f"unclosed {file!r}", ResourceWarning, stacklevel=3)


def open_version(fs: FarhaulFileSystem, path: str, details: dict[str, Any]) -> OpenVersion:
    """The version of a file that is opened for reading."""
    if details["type"] == "directory":
        raise IsADirectoryError("IS_A_DIRECTORY", f"{fs.unstrip_protocol(path)} is a directory")
    return OpenVersion(fs, path, version_of(details), may_grow=not _is_read_from_the_end(path))


def _is_read_from_the_end(path: str) -> bool:
    return path.lower().endswith(_READ_FROM_THE_END)


async def _awaited(function: Any, *arguments: Any) -> Any:
    return await function(*arguments)
