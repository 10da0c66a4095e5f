"""Reading ahead: as far as reads go on where the last one ended, or jump by the same distance."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import ClassVar, NamedTuple

from fsspec.caching import BaseCache, register_cache  # type: ignore[import-untyped]

_LEAST = 64 << 10
"""Bytes that a read elsewhere requests at least: a header and what follows it come in one answer."""
_PIECE = 1 << 20
"""Bytes of one request."""
_STRIDES = 16
"""Reads of equal distance that are requested ahead, at most."""


class _Part(NamedTuple):
    """Bytes that are requested."""

    start: int
    stop: int
    content: Future[bytes]


class ReadAhead(BaseCache):  # type: ignore[misc]
    """Requests what follows before it is read.

    - A read that goes on where the last one ended doubles what is requested ahead, up to ``blocksize`` times eight. So a program that
      reads a file from its beginning gets it at the rate of the path.
    - Reads of equal distance, such as those of an array's rows or a table's column, have the next ones requested, from the third on.
    - A read elsewhere requests what it needs.
    """

    name: ClassVar[str] = "farhaul"

    def __init__(self, blocksize: int, fetcher: Callable[[int, int], bytes], size: int) -> None:
        super().__init__(blocksize, fetcher, size)
        self._most = 8 * blocksize
        self._ask: Callable[[int, int], Future[bytes]] = self._fetched
        # What goes on: contiguous parts, and where the next read begins if it goes on.
        self._parts: deque[_Part] = deque()
        self._position = 0
        self._ahead = 0
        # What jumps: the last jump, its distance, and how often it came.
        self._jumped: deque[_Part] = deque()
        self._origin = 0
        self._distance = 0
        self._times = 0

    def asks(self, ask: Callable[[int, int], Future[bytes]]) -> None:
        """Requests bytes by this function, which does not wait."""
        self._ask = ask

    def close(self) -> None:
        """Gives up what is requested."""
        for part in (*self._parts, *self._jumped):
            part.content.cancel()
        self._parts.clear()
        self._jumped.clear()

    def _fetch(self, start: int | None, stop: int | None) -> bytes:
        start = start or 0
        stop = self.size if stop is None else min(stop, self.size)
        if start >= stop:
            return b""
        while self._parts and self._parts[0].stop <= start:
            self._parts.popleft()
        covers = bool(self._parts) and self._parts[0].start <= start
        goes_on = covers or start == self._position > 0
        self._position = stop
        if not goes_on:
            return self._read_elsewhere(start, stop)
        self.hit_count += covers
        self.miss_count += not covers
        self._ahead = min(max(2 * self._ahead, stop - start, _LEAST), self._most)
        if not covers:
            self._parts.clear()
            self._request(start, stop)
        self._request_ahead(stop)
        return self._joined(start, stop)

    def _read_elsewhere(self, start: int, stop: int) -> bytes:
        self._ahead = 0
        distance, self._origin = start - self._origin, start
        if distance == self._distance > 0:
            self._times += 1
        else:
            self._distance, self._times = distance, 1
            self.close()
        while self._jumped and self._jumped[0].start < start:
            self._jumped.popleft()
        found = self._jumped.popleft() if self._jumped and self._jumped[0].stop >= stop else None
        if found is None:
            self.miss_count += 1
            self.close()
            self._request(start, max(stop, min(start + _LEAST, self.size)))
        else:
            self.hit_count += 1
        self._request_jumps(start, stop)
        if found is None:
            return self._joined(start, stop)
        self._parts.clear()
        return self._taken(found, start, stop)

    def _request_ahead(self, stop: int) -> None:
        """A few large requests are better than many small ones, so half of what is ahead must be gone."""
        end = self._parts[-1].stop
        if end < stop or end - stop < self._ahead // 2:
            self._request(end, min(stop + self._ahead, self.size))

    def _request_jumps(self, start: int, stop: int) -> None:
        """Requests the next reads of equal distance: four after the third read, and more with each further one."""
        if self._times < 2 or self._distance < stop - start:
            return
        wanted = min(4 ** min(self._times - 1, 4), _STRIDES, max(1, self._most // (stop - start)))
        following = self._jumped[-1].start if self._jumped else start
        while len(self._jumped) < wanted:
            following += self._distance
            end = following + stop - start
            if end > self.size:
                return
            self.total_requested_bytes += end - following
            self._jumped.append(_Part(following, end, self._ask(following, end)))

    def _request(self, start: int, end: int) -> None:
        while start < end:
            stop = min(start + _PIECE, end)
            self.total_requested_bytes += stop - start
            self._parts.append(_Part(start, stop, self._ask(start, stop)))
            start = stop

    def _joined(self, start: int, stop: int) -> bytes:
        content = [self._taken(part, start, stop) for part in self._parts if part.start < stop]
        return content[0] if len(content) == 1 else b"".join(content)

    def _taken(self, part: _Part, start: int, stop: int) -> bytes:
        try:
            content = part.content.result()
        except BaseException:
            self.close()
            raise
        if len(content) != part.stop - part.start:
            self.close()
            raise OSError(f"the file ended at byte {part.start + len(content)}: it was shortened while it was read")
        return content[max(start - part.start, 0) : stop - part.start]

    def _fetched(self, start: int, end: int) -> Future[bytes]:
        done: Future[bytes] = Future()
        done.set_result(self.fetcher(start, end))
        return done


register_cache(ReadAhead, clobber=True)
