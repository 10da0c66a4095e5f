"""Reading ahead, as far as the reads go on where the last one ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import ClassVar

from fsspec.caching import BaseCache, register_cache  # type: ignore[import-untyped]

_LEAST = 64 << 10
"""Bytes that a read elsewhere requests at least: a header and what follows it come in one answer."""
_PIECE = 1 << 20
"""Bytes of one request."""


class ReadAhead(BaseCache):  # type: ignore[misc]
    """Requests what follows before it is read.

    A read that goes on where the last one ended doubles what is requested ahead, up to ``blocksize`` times eight. A read elsewhere
    requests what it needs. So a program that reads a file from its beginning gets it at the rate of the path, and one that reads
    columns of a table gets little more than these.
    """

    name: ClassVar[str] = "farhaul"

    def __init__(self, blocksize: int, fetcher: Callable[[int, int], bytes], size: int) -> None:
        super().__init__(blocksize, fetcher, size)
        self._most = 8 * blocksize
        self._ahead = 0
        # Where the next read begins, if it goes on.
        self._position = 0
        self._parts: deque[tuple[int, int, Future[bytes]]] = deque()
        self._ask: Callable[[int, int], Future[bytes]] = self._fetched

    def asks(self, ask: Callable[[int, int], Future[bytes]]) -> None:
        """Requests bytes by this function, which does not wait."""
        self._ask = ask

    def _fetched(self, start: int, end: int) -> Future[bytes]:
        done: Future[bytes] = Future()
        done.set_result(self.fetcher(start, end))
        return done

    def _fetch(self, start: int | None, stop: int | None) -> bytes:
        start = start or 0
        stop = self.size if stop is None else min(stop, self.size)
        if start >= stop:
            return b""
        while self._parts and self._parts[0][1] <= start:
            self._parts.popleft()
        covers = bool(self._parts) and self._parts[0][0] <= start
        if covers:
            self.hit_count += 1
        else:
            self.miss_count += 1
            self.close()
        if covers or start == self._position > 0:
            self._ahead = min(max(2 * self._ahead, stop - start, _LEAST), self._most)
        else:
            self._ahead = 0
        self._position = stop
        if not self._parts:
            self._request(start, max(stop, min(start + _LEAST, self.size)))
        end = self._parts[-1][1]
        # A few large requests are better than many small ones, so half of what is ahead must be gone.
        if end < stop or self._ahead and end - stop < self._ahead // 2:
            self._request(end, min(stop + self._ahead, self.size))
        content = [self._taken(part, start, stop) for part in self._parts if part[0] < stop]
        return content[0] if len(content) == 1 else b"".join(content)

    def _request(self, start: int, end: int) -> None:
        while start < end:
            stop = min(start + _PIECE, end)
            self.total_requested_bytes += stop - start
            self._parts.append((start, stop, self._ask(start, stop)))
            start = stop

    def _taken(self, part: tuple[int, int, Future[bytes]], start: int, stop: int) -> bytes:
        begin, end, future = part
        try:
            content = future.result()
        except BaseException:
            self.close()
            raise
        if len(content) != end - begin:
            self.close()
            raise OSError(f"the file ended at byte {begin + len(content)}: it was shortened while it was read")
        return content[max(start - begin, 0) : stop - begin]

    def close(self) -> None:
        """Gives up what is requested."""
        for _, _, future in self._parts:
            future.cancel()
        self._parts.clear()


register_cache(ReadAhead, clobber=True)
