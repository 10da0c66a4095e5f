"""Reading ahead: as far as reads go on where the last one ended, jump by the same distance, or read columns of a Parquet file."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from itertools import count, islice
from typing import ClassVar, NamedTuple

from fsspec.caching import BaseCache, register_cache  # type: ignore[import-untyped]

from ._parquet import Columns

_LEAST = 64 << 10
"""Bytes that a read elsewhere requests at least: a header and what follows it come in one answer."""
_PIECE = 1 << 20
"""Bytes of one request."""
_STRIDES = 16
"""Reads of equal distance that are requested ahead, at most."""
_AT_ONCE = 64
"""Requests for reads elsewhere that wait at a time, at most: half of what a connection carries."""
_COLUMNS = 4
"""Bytes of columns that are requested ahead, for each byte of columns that was read: so much is requested in vain, at most."""


class _Part(NamedTuple):
    """Bytes that are requested."""

    start: int
    stop: int
    content: Future[bytes]


class _Expected:
    """Parts that are expected to be read, by where they begin. The oldest is first."""

    def __init__(self) -> None:
        self._parts: dict[int, _Part] = {}
        self.bytes = 0

    def __contains__(self, start: int) -> bool:
        return start in self._parts

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, part: _Part) -> None:
        self._parts[part.start] = part
        self.bytes += part.stop - part.start

    def take(self, start: int, stop: int) -> _Part | None:
        part = self._parts.get(start)
        return self._remove(start) if part is not None and part.stop >= stop else None

    def give_up(self) -> None:
        while self._parts:
            self.give_up_oldest()

    def give_up_oldest(self) -> None:
        if self._parts:
            self._remove(next(iter(self._parts))).content.cancel()

    def give_up_before(self, start: int) -> None:
        for begin in [begin for begin in self._parts if begin < start]:
            self._remove(begin).content.cancel()

    def _remove(self, start: int) -> _Part:
        part = self._parts.pop(start)
        self.bytes -= part.stop - part.start
        return part


class ReadAhead(BaseCache):  # type: ignore[misc]
    """Requests what follows before it is read.

    - A read that goes on where the last one ended doubles what is requested ahead, up to ``blocksize`` times eight. So a program that
      reads a file from its beginning gets it at the rate of the path.
    - Reads of equal distance, such as those of an array's rows, have the next ones requested, from the third on.
    - A read of columns of a Parquet file, whose footer was read, has the same columns of other row groups requested. Readers take them
      in any order.
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
        self._expected = _Expected()
        self._origin = 0
        self._distance = 0
        self._times = 0
        # What reads columns: where they lie, where those begin that were read, and the bytes of these.
        self.columns: Columns | None = None
        self.on_table: Callable[[bytes, Columns], None] = lambda tail, columns: None
        self._of_columns: set[int] = set()
        self._bytes_of_columns = 0

    def asks(self, ask: Callable[[int, int], Future[bytes]]) -> None:
        """Requests bytes by this function, which does not wait."""
        self._ask = ask

    def has_asked(self, start: int, stop: int, content: Future[bytes]) -> None:
        """Takes over a request for bytes that the next read is likely to want."""
        if start < stop:
            self.total_requested_bytes += stop - start
            self._parts.append(_Part(start, stop, content))

    def has(self, tail: bytes, columns: Columns) -> None:
        """Knows the end of a table already, and where its columns lie."""
        content: Future[bytes] = Future()
        content.set_result(tail)
        self._parts.append(_Part(self.size - len(tail), self.size, content))
        self.columns = columns

    def close(self) -> None:
        """Gives up what is requested."""
        self._give_up_parts()
        self._expected.give_up()

    def _give_up_parts(self) -> None:
        for part in self._parts:
            part.content.cancel()
        self._parts.clear()

    def _fetch(self, start: int | None, stop: int | None) -> bytes:
        start = start or 0
        stop = self.size if stop is None else min(stop, self.size)
        if start >= stop:
            return b""
        while self._parts and self._parts[0].stop <= start:
            self._parts.popleft()
        covers = bool(self._parts) and self._parts[0].start <= start
        goes_on = (covers or start == self._position > 0) and start not in self._expected
        self._position = stop
        content = self._read_on(start, stop, covers) if goes_on else self._read_elsewhere(start, stop)
        if stop == self.size and self.columns is None and (found := Columns.of(content)) is not None:
            self.columns = found
            self.on_table(content, found)
        return content

    def _read_on(self, start: int, stop: int, covers: bool) -> bytes:
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
        self._give_up_parts()
        alike = None if self.columns is None else self.columns.following(start, stop)
        if alike is None:
            self._count_jump(start)
        found = self._expected.take(start, stop)
        if found is not None:
            self.hit_count += 1
        else:
            self.miss_count += 1
            if self._expected.bytes + stop - start > self._most:
                self._expected.give_up_oldest()
            least = 0 if alike is not None else _LEAST
            self._request(start, max(stop, min(start + least, self.size)))
        if alike is not None:
            self._request_columns(start, stop, alike)
        else:
            self._request_jumps(start, stop)
        return self._joined(start, stop) if found is None else self._taken(found, start, stop)

    def _count_jump(self, start: int) -> None:
        distance, self._origin = start - self._origin, start
        if distance == self._distance > 0:
            self._times += 1
            self._expected.give_up_before(start)
        else:
            self._distance, self._times = distance, 1
            self._expected.give_up()

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
        jumps = ((begin, begin + stop - start) for begin in count(start + self._distance, self._distance))
        self._expect(islice(jumps, wanted), self._most)

    def _request_columns(self, start: int, stop: int, alike: Iterator[tuple[int, int]]) -> None:
        """Requests the same columns of other row groups, if they were not read since the file was read from its beginning."""
        if start in self._of_columns:
            self._of_columns.clear()
        self._of_columns.add(start)
        self._bytes_of_columns += stop - start
        others = (part for part in alike if part[0] not in self._of_columns)
        self._expect(others, min(_COLUMNS * self._bytes_of_columns, self._most))

    def _expect(self, ranges: Iterable[tuple[int, int]], most: int) -> None:
        """Requests ranges that are likely to be read, so that at most this many bytes wait for that."""
        for start, stop in ranges:
            if start in self._expected:
                continue
            if not start < stop <= self.size or self._expected.bytes + stop - start > most or len(self._expected) == _AT_ONCE:
                return
            self.total_requested_bytes += stop - start
            self._expected.add(_Part(start, stop, self._ask(start, stop)))

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
