"""File systems of fsspec: ``udt://`` for running servers, and ``farhaul+ssh://`` for hosts that ssh reaches.

They are natively asynchronous. One connection to each host and process carries all requests, many at a time, and each answer is
compared with its digest. Instances are pickled by their arguments.

**URLs.** ``udt://host:port/path`` and ``farhaul+ssh://[user@]host/path``. An IPv6 address has brackets, and is written out: to
fsspec, ``::`` joins URLs. In a URL, ``%`` and two digits stand for a byte. Paths without a protocol are taken as they are. Passwords
in URLs are refused.
"""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import os
import secrets
import stat
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from concurrent.futures import Future
from typing import Any, ClassVar
from urllib.parse import quote_from_bytes, unquote_to_bytes

from fsspec.asyn import AsyncFileSystem, sync, sync_wrapper  # type: ignore[import-untyped]
from fsspec.callbacks import DEFAULT_CALLBACK, Callback  # type: ignore[import-untyped]
from fsspec.utils import stringify_path  # type: ignore[import-untyped]

from ._errors import OF_ONE_PLACE, Error, NotADirectoryError, NotFoundError, UsageError
from ._farhaul import RemoteFiles, _has_ended
from ._open_files import BLOCK, FarhaulFile, FarhaulStreamedFile, close_written, open_version
from ._parquet import Tables
from ._pool import shared_files
from ._properties import RecentProperties
from ._trees import ALL_LEVELS, Directory, directories, is_below, is_missing
from ._url import bracketed, parts
from ._versions import Version, has_changed, version_of

_PORT = 9000
"""The port of a server whose URL names none."""
_PIECE = 1 << 20
"""Bytes of one request of a whole file."""
_AT_ONCE = 64
"""Such requests at a time: with 1 MiB each, they fill 5 Gbit/s over 100 ms."""
_ALL = 1 << 62
"""More bytes than any file has."""
_LINKS = 8
"""Links that lead to a file, at most."""


# Before the connections end: what is registered last runs first.
atexit.register(close_written)


class FarhaulFileSystem(AsyncFileSystem):  # type: ignore[misc]
    """The files of a running server, below its root.

    ``host`` and ``port`` name the server; further arguments are those of `farhaul.copy` for connections, such as ``host_key`` or
    ``plain``. Files appear under their names once they are whole, verified and safe on the disk there.
    """

    protocol: ClassVar[str | tuple[str, ...]] = ("udt",)
    root_marker = "/"
    async_impl = True
    mirror_sync_methods = True
    cachable = True
    _scheme: ClassVar[str] = "udt"

    def __init__(
        self,
        host: str | None = None,
        port: int | None = None,
        *,
        asynchronous: bool = False,
        loop: Any = None,
        batch_size: int | None = None,
        use_listings_cache: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(asynchronous=asynchronous, loop=loop, batch_size=batch_size, use_listings_cache=False)
        self.host = host
        self.port = port
        self._options = options
        self._address = self._address_of(host, port)
        self._tables = Tables()
        self._recent = RecentProperties()
        # Wrong arguments fail here, and not with the first request.
        self._remote()

    def _address_of(self, host: str | None, port: int | None) -> str:
        if not host:
            raise UsageError("USAGE", "the name of the server is missing", "write udt://host:port/path")
        return f"udt://{bracketed(host)}:{port or _PORT}"

    def _remote(self) -> RemoteFiles:
        return shared_files(self._address, self._options)

    def __repr__(self) -> str:
        return f"<farhaul.{type(self).__name__} of {self._root_url()}>"

    # URLs and paths

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        """The path of a URL on its host: absolute, decoded, without a slash at its end, and with one between its names."""
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        path = stringify_path(path)
        found = cls._url(path)
        if found is not None:
            path = os.fsdecode(unquote_to_bytes(found["path"] or "/"))
        return "/" + "/".join(name for name in path.split("/") if name) or cls.root_marker

    def unstrip_protocol(self, name: str) -> str:
        """The whole URL of a path, with its host."""
        if self._url(stringify_path(name)) is not None:
            return str(name)
        path = quote_from_bytes(os.fsencode(self._strip_protocol(name)), safe="/~")
        return self._root_url() + path

    def _root_url(self) -> str:
        return self._address

    @classmethod
    def _get_kwargs_from_urls(cls, path: Any) -> dict[str, Any]:
        found = cls._url(stringify_path(path))
        if found is None:
            return {}
        if found["user"] is not None:
            raise UsageError("USAGE", "a server knows its clients by their keys, so its URL has no user")
        arguments: dict[str, Any] = {}
        if found["host"]:
            arguments["host"] = found["host"].removeprefix("[").removesuffix("]")
        if found["port"]:
            arguments["port"] = int(found["port"])
        return arguments

    @classmethod
    def _url(cls, path: str) -> dict[str, Any] | None:
        """The parts of a URL; `None` for a path."""
        names = (cls.protocol,) if isinstance(cls.protocol, str) else cls.protocol
        for name in names:
            if path.startswith(f"{name}://"):
                return parts(path[len(name) + 3 :])
        return None

    def _service_path(self, path: str) -> bytes:
        """A path as the server takes it."""
        return os.fsencode(self._strip_protocol(path).removeprefix("/"))

    # Properties

    async def _info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        return self._recent.get(path) or await self._info_now(path)

    async def _info_now(self, path: str) -> dict[str, Any]:
        path = self._strip_protocol(path)
        if path == self.root_marker and self._scheme == "udt":
            return {"name": path, "size": 0, "type": "directory"}
        changes = self._recent.changes
        found = await self._remote().stat(self._service_path(path))
        entry = await self._entry(path, found)
        self._recent.remember(path, entry, changes)
        return entry

    def invalidate_cache(self, path: str | None = None) -> None:
        """Asks the server again, instead of taking what it said within the last second."""
        self._recent.forget()
        super().invalidate_cache(path)

    async def _entry(self, path: str, found: dict[str, Any]) -> dict[str, Any]:
        entry = _entry(path, found)
        return await self._followed(entry) if entry["type"] == "link" else entry

    async def _followed(self, entry: dict[str, Any]) -> dict[str, Any]:
        """A link has the type and the size of what it leads to, if that lies below the root."""
        path = name = entry["name"]
        first = entry["destination"]
        for _ in range(_LINKS):
            target = entry["destination"]
            path = os.path.normpath(os.path.join(os.path.dirname(path), target))
            if target.startswith("/") and self._scheme == "udt":
                break
            try:
                found = _entry(path, await self._remote().stat(self._service_path(path)))
            except Error as error:
                if error.code not in OF_ONE_PLACE:
                    raise
                break
            if found["type"] != "link":
                return {**found, "name": name, "islink": True, "destination": first, "realpath": path}
            entry = {**entry, "destination": found["destination"]}
        return {**entry, "destination": first}

    async def _ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        path = self._strip_protocol(path)
        changes = self._recent.changes
        try:
            listed = await self._remote().list(self._service_path(path))
        except NotADirectoryError:
            entry = await self._info_now(path)
            return [entry] if detail else [entry["name"]]
        if not detail:
            folder = path.rstrip("/")
            return [f"{folder}/{os.fsdecode(name)}" for name, _ in listed]
        directory = Directory(path, self._entries(path, listed))
        await self._follow([directory], changes)
        return directory.entries

    def _entries(self, path: str, listed: list[tuple[bytes, dict[str, Any]]]) -> list[dict[str, Any]]:
        folder = path.rstrip("/")
        return [_entry(f"{folder}/{os.fsdecode(name)}", found) for name, found in listed]

    async def _follow(self, directories: list[Directory], changes: int) -> None:
        """Gives the links in directories the properties of what they lead to, all at once, and remembers the entries."""
        lists = [directory.entries for directory in directories]
        links = [(entries, at) for entries in lists for at, entry in enumerate(entries) if entry["type"] == "link"]
        found = await asyncio.gather(*(self._followed(entries[at]) for entries, at in links))
        for (entries, at), entry in zip(links, found, strict=True):
            entries[at] = entry
        for entries in lists:
            for entry in entries:
                self._recent.remember(entry["name"], entry, changes)

    async def _walk(
        self,
        path: str,
        maxdepth: int | None = None,
        topdown: bool = True,
        on_error: Any = "omit",
        *,
        detail: bool = False,
        **kwargs: Any,
    ) -> AsyncGenerator[tuple[str, Any, Any]]:
        """All directories from ``path`` on, with their entries, by few requests. Directories that are gone are left out; other failures
        are raised. Links to directories are listed, and not followed.

        With a function as ``on_error``, it is called with each failure, and may raise it.
        """
        if maxdepth is not None and maxdepth < 1:
            raise ValueError("maxdepth must be at least 1")
        # The last directory behind its parents, and the names in each that are to be visited.
        ancestors: list[tuple[str, Any, Any, set[str]]] = []
        async for directory in directories(self, self._strip_protocol(path), maxdepth or ALL_LEVELS):
            here = directory.path
            while ancestors and not is_below(here, ancestors[-1][0]):
                entered = ancestors.pop()
                if not topdown:
                    yield entered[:3]
            if ancestors and here.removeprefix(ancestors[-1][0].rstrip("/")).split("/", 2)[1] not in ancestors[-1][3]:
                # The caller does not want it.
                continue
            if directory.error is not None:
                self._leave_out(directory.error, on_error)
                if not directory.entries:
                    continue
            dirs: dict[str, Any] = {}
            files: dict[str, Any] = {}
            for entry in directory.entries:
                name = "" if entry["name"] == here else entry["name"].rpartition("/")[2]
                (dirs if entry["type"] == "directory" else files)[name] = entry
            step = (here, dirs, files) if detail else (here, list(dirs), list(files))
            if topdown:
                yield step
            ancestors.append((*step, set(step[1])))
        while ancestors and not topdown:
            yield ancestors.pop()[:3]

    def _leave_out(self, error: OSError, on_error: Any) -> None:
        """Goes on without a directory, or raises."""
        if callable(on_error):
            on_error(error)
        elif on_error == "raise" or not is_missing(error):
            raise error

    def walk(self, path: str, maxdepth: int | None = None, topdown: bool = True, **kwargs: Any) -> Iterator[tuple[str, Any, Any]]:
        """All directories from ``path`` on, with their entries. Directories that are gone are left out; other failures are raised.

        With a function as ``on_error``, it is called with each failure, and may raise it.
        """
        # What nobody takes to its end is closed by its loop, for which nobody may wait at the end of the program.
        steps = self._walk(path, maxdepth=maxdepth, topdown=topdown, **kwargs)
        while (step := self._sync(_next, steps)) is not None:
            yield step

    async def _exists(self, path: str, **kwargs: Any) -> bool:
        try:
            await self._info_now(path)
        except (NotFoundError, NotADirectoryError):
            return False
        return True

    async def _isfile(self, path: str) -> bool:
        return await self._type(path) == "file"

    async def _isdir(self, path: str) -> bool:
        return await self._type(path) == "directory"

    async def _type(self, path: str) -> str | None:
        """The type of an entry; `None` if there is none. A lost connection raises."""
        try:
            return str((await self._info_now(path))["type"])
        except (NotFoundError, NotADirectoryError):
            return None

    async def _digest(self, path: str) -> str:
        """The BLAKE3 digest of a file, as b3sum prints it. The server reads all of it."""
        _, digest = await self._remote().digest(self._service_path(await self._real(path)))
        if digest is None:
            raise Error("UNSUPPORTED", f"{self.unstrip_protocol(path)}: the server does not tell its digest")
        return digest

    async def _real(self, path: str) -> str:
        """The path of a file without links. The server follows none."""
        return str((await self._info_now(path)).get("realpath", path))

    async def _ukey(self, path: str) -> str:
        """Differs once the file has another size or another time of change."""
        return _tag(await self._info_now(path))

    async def _checksum(self, path: str) -> int:
        """A number for its name and `ukey`. Dask asks for that of each file of a data set, so the server must not read the files for it."""
        info = await self._info(path)
        return int.from_bytes(hashlib.blake2b(os.fsencode(f"{info['name']} {_tag(info)}"), digest_size=16).digest())

    async def _created(self, path: str) -> Any:
        raise NotImplementedError("the server knows when a file changed, and not when it was made")

    async def _modified(self, path: str) -> Any:
        from datetime import UTC, datetime

        mtime = (await self._info_now(path))["mtime"]
        try:
            return datetime.fromtimestamp(mtime, tz=UTC)
        except (OverflowError, OSError, ValueError) as error:
            # A server may name any time.
            named = self.unstrip_protocol(path)
            raise Error("UNSUPPORTED", f"{named}: it has the time {mtime}, which is outside the years of datetime") from error

    # Reading

    async def _cat_file(
        self,
        path: str,
        start: int | None = None,
        end: int | None = None,
        *,
        versions: dict[str, set[Version]] | None = None,
        **kwargs: Any,
    ) -> bytes:
        """Bytes of a file at one moment. Its version there is added to ``versions``."""
        content, version = await self._slice_of(path, start or 0, end)
        if version is not None and versions is not None:
            versions.setdefault(path, set()).add(version)
        return content

    async def _slice_of(self, path: str, start: int, end: int | None) -> tuple[bytes, Version | None]:
        """Bytes of a file, and the version that they belong to; none for no bytes."""
        if end is None and start < 0:
            return await self._range_of(path, start, -start)
        said: Version | None = None
        if start < 0 or (end is not None and end < 0):
            info = await self._info_now(path)
            size, said = info["size"], version_of(info)
            start = max(0, size + start) if start < 0 else start
            end = size if end is None else size + end if end < 0 else end
        length = _ALL if end is None else end - start
        if length <= 0:
            return b"", None
        content, version = await self._range_of(path, start, length)
        if said not in (None, version):
            raise has_changed(self.unstrip_protocol(path))
        return content, version

    async def _cat_ranges(
        self,
        paths: list[str],
        starts: Any,
        ends: Any,
        max_gap: int | None = None,
        batch_size: int | None = None,
        on_error: str = "return",
        **kwargs: Any,
    ) -> list[Any]:
        """Ranges of files. All of one file are of one version, or each is an error."""
        versions: dict[str, set[Version]] = {}

        contents: list[Any] = await super()._cat_ranges(
            paths, starts, ends, max_gap, batch_size, "return", versions=versions, **kwargs
        )
        for index, path in enumerate(paths):
            if len(versions.get(path, ())) > 1 and not isinstance(contents[index], BaseException):
                contents[index] = has_changed(self.unstrip_protocol(path))
        if on_error != "return" and (failed := next((each for each in contents if isinstance(each, BaseException)), None)):
            raise failed
        return contents

    async def _range_of(self, path: str, start: int, length: int) -> tuple[bytes, Version]:
        """Bytes of a file, and the version that they belong to."""
        try:
            content, _, version = await self._remote().read(self._service_path(path), start, length)
        except Error as error:
            real = await self._real(path) if error.code == "FILES_FAILED" else path
            if real == path:
                raise
            content, _, version = await self._remote().read(self._service_path(real), start, length)
        return content, version

    async def _info_and_tail(self, path: str, length: int) -> tuple[dict[str, Any], Future[bytes]]:
        """The properties of a file, and its last bytes, which are requested with them and arrive later."""
        loop = asyncio.get_running_loop()
        opened: asyncio.Future[Version] = loop.create_future()

        async def of_that_version() -> bytes:
            content, now = await self._range_of(path, -length, length)
            version = await opened
            if now != version:
                # It changed in between: before the properties were read, or after that.
                start = max(version[0] - length, 0)
                content, now = await self._range_of(path, start, version[0] - start)
                if now != version:
                    raise has_changed(self.unstrip_protocol(path))
            return content

        tail = asyncio.run_coroutine_threadsafe(of_that_version(), loop)
        try:
            info = await self._info_now(path)
        except BaseException:
            tail.cancel()
            raise
        opened.set_result(version_of(info))
        return info, tail

    async def _get_file(
        self, rpath: str, lpath: Any, *, callback: Callback = DEFAULT_CALLBACK, outfile: Any = None, **kwargs: Any
    ) -> None:
        info = await self._info_now(rpath)
        if outfile is None and (info["type"] == "directory" or os.path.isdir(lpath)):
            os.makedirs(lpath, exist_ok=True)
            return
        callback.set_size(info["size"])
        if outfile is not None:
            async for block in self._blocks(info):
                callback.relative_update(outfile.write(block))
            return
        folder, name = os.path.split(os.path.abspath(lpath))
        os.makedirs(folder, exist_ok=True)
        partial = os.path.join(folder, f".{name[:200]}.{secrets.token_hex(4)}.part")
        try:
            with open(partial, "xb") as file:
                async for block in self._blocks(info):
                    callback.relative_update(file.write(block))
            os.replace(partial, lpath)
        except BaseException:
            if os.path.exists(partial):
                os.unlink(partial)
            raise

    async def _blocks(self, info: dict[str, Any]) -> AsyncIterator[bytes]:
        """The content of a file in order, with many requests at a time."""
        path, size = info.get("realpath", info["name"]), info["size"]
        remote, place = self._remote(), self._service_path(path)
        asked: list[asyncio.Future[tuple[bytes, bool, Version]]] = []
        following = 0
        try:
            while asked or following < size:
                while following < size and len(asked) < _AT_ONCE:
                    asked.append(asyncio.ensure_future(remote.read(place, following, min(_PIECE, size - following))))
                    following += _PIECE
                block, _, now = await asked.pop(0)
                if now != version_of(info):
                    raise has_changed(self.unstrip_protocol(path))
                yield block
        finally:
            for future in asked:
                future.cancel()

    # Writing

    async def _pipe_file(self, path: str, value: Any, mode: str = "overwrite", **kwargs: Any) -> None:
        with self._recent.changing():
            await self._remote().put(self._service_path(path), value, replace=mode != "create")

    async def _put_file(
        self,
        lpath: Any,
        rpath: str,
        mode: str = "overwrite",
        *,
        callback: Callback = DEFAULT_CALLBACK,
        **kwargs: Any,
    ) -> None:
        if os.path.isdir(lpath):
            await self._makedirs(rpath, exist_ok=True)
            return
        with open(lpath, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            callback.set_size(size)
            writer = await self._remote().create(self._service_path(rpath), replace=mode != "create")
            try:
                while block := file.read(BLOCK):
                    await writer.write(block)
                    callback.relative_update(len(block))
                with self._recent.changing():
                    await writer.finish()
            except BaseException:
                writer.discard()
                raise

    async def _cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        """Copies on the server: no byte comes here."""
        target = self._service_path(path2)
        try:
            with self._recent.changing():
                await self._remote().copy(self._service_path(path1), target, True)
        except Error:
            # A directory or a link. Both are rare, so nobody asks before.
            info = await self._info_now(path1)
            if info["type"] == "directory":
                await self._makedirs(path2, exist_ok=True)
            elif "realpath" in info:
                with self._recent.changing():
                    await self._remote().copy(self._service_path(info["realpath"]), target, True)
            else:
                raise

    async def _mv_file(self, path1: str, path2: str) -> None:
        with self._recent.changing():
            await self._remote().rename(self._service_path(path1), self._service_path(path2), True)

    def mv(self, path1: str, path2: str, recursive: bool = False, maxdepth: int | None = None, **kwargs: Any) -> None:
        """Gives entries other names. One file or directory is renamed, whatever its size."""
        if isinstance(path1, str) and maxdepth is None and not _is_pattern(path1) and not str(path2).endswith("/"):
            source, target = self._strip_protocol(path1), self._strip_protocol(path2)
            if source != target and not self.isdir(target):
                self._sync(self._mv_file, source, target)
                return
        super().mv(path1, path2, recursive=recursive, maxdepth=maxdepth, **kwargs)

    async def _rm_file(self, path: str, **kwargs: Any) -> None:
        with self._recent.changing():
            await self._remote().remove(self._service_path(path), "either")

    async def _rm(
        self,
        path: Any,
        recursive: bool = False,
        batch_size: int | None = None,
        maxdepth: int | None = None,
        **kwargs: Any,
    ) -> Any:
        if recursive and maxdepth is None and isinstance(path, str) and not _is_pattern(path):
            # The server removes the tree, in one request.
            with self._recent.changing():
                return await self._remote().remove(self._service_path(path), "tree")
        return await super()._rm(path, recursive=recursive, batch_size=batch_size, maxdepth=maxdepth, **kwargs)

    async def _rmdir(self, path: str) -> None:
        with self._recent.changing():
            await self._remote().remove(self._service_path(path), "directory")

    async def _mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> None:
        with self._recent.changing():
            is_new = await self._remote().create_dir(self._service_path(path), create_parents)
        if not is_new:
            raise FileExistsError(f"{self.unstrip_protocol(path)} exists")

    async def _makedirs(self, path: str, exist_ok: bool = False) -> None:
        place = self._service_path(path)
        with self._recent.changing():
            is_new = await self._remote().create_dir(place, True) if place else False
        if not is_new and not exist_ok:
            raise FileExistsError(f"{self.unstrip_protocol(path)} exists")

    async def _touch(self, path: str, truncate: bool = True, **kwargs: Any) -> None:
        if not truncate and await self._exists(path):
            raise NotImplementedError("the server does not change the time of a file alone")
        await self._pipe_file(path, b"")

    # Open files

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> FarhaulFile:
        if mode == "xb" and self.exists(path):
            # Its end checks that again, at one blow.
            raise FileExistsError(f"{self.unstrip_protocol(path)} exists")
        return FarhaulFile(self, path, mode, block_size or BLOCK, autocommit, cache_options=cache_options, **kwargs)

    async def open_async(self, path: str, mode: str = "rb", **kwargs: Any) -> FarhaulStreamedFile:
        """A file for tasks."""
        if mode not in ("rb", "wb"):
            raise NotImplementedError(f"mode {mode!r}: files of tasks are read or written")
        path = self._strip_protocol(path)
        info = await self._info_now(path) if mode == "rb" else None
        size = info["size"] if info else None
        opened = open_version(self, path, info) if info else None
        file = FarhaulStreamedFile(self, path, mode, BLOCK, cache_type="none", size=size, **kwargs)
        file.opened = opened
        return file

    @property
    def loop(self) -> Any:
        """The event loop of its requests. Behind the end of the package, nobody there answers any more."""
        if _has_ended():
            why = "the program ends, and farhaul has ended before"
            raise Error("FAILED", why, "register functions of atexit after the import of farhaul")
        return super().loop

    def _sync(self, function: Any, *arguments: Any, **keywords: Any) -> Any:
        return sync(self.loop, function, *arguments, **keywords)

    digest = sync_wrapper(_digest)
    checksum = sync_wrapper(_checksum)
    ukey = sync_wrapper(_ukey)
    modified = sync_wrapper(_modified)
    created = sync_wrapper(_created)
    rmdir = sync_wrapper(_rmdir)
    touch = sync_wrapper(_touch)


class FarhaulSshFileSystem(FarhaulFileSystem):
    """The files of a host that ssh reaches. It needs the program ``farhaul`` there, and no server.

    A path begins at the root of that host, or in the home directory: ``farhaul+ssh://host/~/data``. Further arguments are those of
    `farhaul.copy` for connections and for ssh, such as ``ssh_port`` or ``ssh_identity``.
    """

    protocol = ("farhaul+ssh",)
    _scheme = "farhaul+ssh"

    def __init__(self, host: str | None = None, username: str | None = None, **kwargs: Any) -> None:
        self.username = username
        super().__init__(host, None, **kwargs)

    def _address_of(self, host: str | None, port: int | None) -> str:
        if not host:
            raise UsageError("USAGE", "the name of the host is missing", "write farhaul+ssh://host/path")
        name = bracketed(host)
        return f"{self.username}@{name}:" if self.username else f"{name}:"

    def _root_url(self) -> str:
        port = self._options.get("ssh_port")
        return f"farhaul+ssh://{self._address.removesuffix(':')}" + (f":{port}" if port else "")

    @classmethod
    def _get_kwargs_from_urls(cls, path: Any) -> dict[str, Any]:
        found = cls._url(stringify_path(path))
        if found is None:
            return {}
        arguments: dict[str, Any] = {}
        if found["host"]:
            arguments["host"] = found["host"].removeprefix("[").removesuffix("]")
        if found["user"]:
            arguments["username"] = os.fsdecode(unquote_to_bytes(found["user"]))
        if found["port"]:
            arguments["ssh_port"] = int(found["port"])
        return arguments

    def _service_path(self, path: str) -> bytes:
        path = self._strip_protocol(path)
        if path == "/~" or path.startswith("/~/"):
            return os.fsencode(path[1:])
        return os.fsencode(path)


def _entry(path: str, found: dict[str, Any]) -> dict[str, Any]:
    """The properties of an entry as fsspec has them."""
    entry = {"name": path, **found}
    entry["mtime"] = found["mtime_ns"] / 1e9
    formats = {"file": stat.S_IFREG, "directory": stat.S_IFDIR, "link": stat.S_IFLNK}
    entry["mode"] = found["mode"] | formats.get(found["type"], 0)
    if "destination" in found:
        entry["destination"] = os.fsdecode(found["destination"])
        entry["islink"] = True
    return entry


def _tag(info: dict[str, Any]) -> str:
    return f"{info['size']}-{info['mtime_ns']}"


async def _next(steps: AsyncIterator[Any]) -> Any:
    return await anext(steps, None)


def _is_pattern(path: str) -> bool:
    return any(mark in path for mark in "*?[")
