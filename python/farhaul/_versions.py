"""The versions of files: what tells them apart, and a file that must not change while it is open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from ._errors import FileChangedError

if TYPE_CHECKING:
    from .fsspec import FarhaulFileSystem

Version: TypeAlias = tuple[int, int, int | None]
"""The size of a file, and when its content and its properties changed, in nanoseconds since 1970. A server may not tell the last one."""

_SAMPLE = 4 << 10
"""Bytes of what was read first, and of what was read last, that must be the same in a file that grew."""


def version_of(entry: dict[str, Any]) -> Version:
    """The version of the file with these properties."""
    return entry["size"], entry["mtime_ns"], entry.get("ctime_ns")


def has_changed(url: str) -> FileChangedError:
    """The error for a file of which parts were read that belong to two of its versions."""
    return FileChangedError("SOURCE_CHANGED", f"{url} changed while it was read", "open it again")


class OpenVersion:
    """The version of an open file.

    A file that only grew, as a log does, may go on: it is larger, and the first and the last bytes that were read of it are the same.
    Before the first read nothing can be compared. Then it is opened at the version of the first answer, if `is_new`.
    """

    size: int
    """The size of the version at which it was opened."""
    is_new: bool
    """Nobody has depended on the size yet."""

    def __init__(self, fs: FarhaulFileSystem, path: str, version: Version, *, may_grow: bool) -> None:
        self._fs = fs
        self._path = path
        self.size = version[0]
        self.is_new = self._may_grow = may_grow
        # All that were read. An answer of an earlier one may arrive later.
        self._versions = {version}
        # Where the first and the last bytes begin that were read, and what they are.
        self._samples: dict[str, tuple[int, bytes]] = {}

    async def part(self, start: int, stop: int) -> bytes:
        """Bytes of the file, or `FileChangedError`."""
        content, now = await self._fs._range_of(self._path, start, stop - start)
        if now not in self._versions:
            if self.is_new and not self._samples and now[0] >= self.size:
                self._versions, self.size = {now}, now[0]
            elif not self._may_grow or now[0] <= self.size or not await self._is_as_it_was():
                self._fs._recent.forget()
                raise has_changed(self._fs.unstrip_protocol(self._path))
            self._versions.add(now)
        if content:
            self._samples.setdefault("first", (start, content[:_SAMPLE]))
            end = content[-_SAMPLE:]
            self._samples["last"] = (start + len(content) - len(end), end)
        return content

    async def _is_as_it_was(self) -> bool:
        if not self._samples:
            return False
        for start, sample in list(self._samples.values()):
            if (await self._fs._range_of(self._path, start, len(sample)))[0] != sample:
                return False
        return True
