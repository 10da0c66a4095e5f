"""Where the columns of a Parquet file lie, so that a column is requested in all row groups at once.

Readers ask for the footer, and then for the same columns of one row group after another.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple, Self

from ._versions import Version

_MAGIC = b"PAR1"
_LARGEST_FOOTER = 8 << 20
"""Bytes. To parse more than that a second time would cost more than it saves."""
_TABLES = 64
"""Tables that are remembered. Most have a footer below 64 KiB."""


class Table(NamedTuple):
    """What is known about a file: its end, which holds the footer, and its columns."""

    version: Version
    tail: bytes
    columns: Columns


class Tables:
    """The tables that were read lately. Readers open a file for its footer, and again for its columns."""

    def __init__(self) -> None:
        self._known: dict[str, Table] = {}

    def has(self, path: str) -> bool:
        return path in self._known

    def get(self, path: str, version: Version) -> Table | None:
        known = self._known.get(path)
        return known if known is not None and known.version == version else None

    def remember(self, path: str, table: Table) -> None:
        self._known.pop(path, None)
        self._known[path] = table
        if len(self._known) > _TABLES:
            self._known.pop(next(iter(self._known)), None)


class _Group(NamedTuple):
    """The columns of a row group, by where they begin and where they end."""

    by_start: dict[int, int]
    by_stop: dict[int, int]


class Columns:
    """The column chunks of a file (Parquet's format: a row group has a chunk for each column, in the order of the columns)."""

    def __init__(self, metadata: Any) -> None:
        self._metadata = metadata
        self._begins = [self._chunk(group, 0)[0] for group in range(metadata.num_row_groups)]
        # Readers have a few row groups in work at a time.
        self._group = lru_cache(maxsize=16)(self._columns_of)

    @classmethod
    def of(cls, tail: bytes) -> Self | None:
        """The columns of a file that ends with these bytes; `None` if they hold no whole footer.

        The footer is read with pyarrow, and only where pyarrow is the reader.
        """
        parquet, pyarrow = sys.modules.get("pyarrow.parquet"), sys.modules.get("pyarrow")
        if parquet is None or pyarrow is None or tail[-4:] != _MAGIC:
            return None
        footer = int.from_bytes(tail[-8:-4], "little") + 8
        if not len(_MAGIC) + 8 < footer <= min(len(tail), _LARGEST_FOOTER):
            return None
        try:
            metadata = parquet.read_metadata(pyarrow.BufferReader(tail[-footer:]))
            return cls(metadata) if metadata.num_columns else None
        except (OSError, ValueError):
            # The reader says what is wrong with the file.
            return None

    def following(self, start: int, stop: int) -> Iterator[tuple[int, int]] | None:
        """Where the columns from ``start`` to ``stop`` lie in the other row groups: in those after this one first.

        `None` if no columns lie exactly there.
        """
        here = bisect_right(self._begins, start) - 1
        if here < 0:
            return None
        group = self._group(here)
        first, last = group.by_start.get(start), group.by_stop.get(stop)
        if first is None or last is None:
            return None
        others = (*range(here + 1, len(self._begins)), *range(here))
        return ((self._chunk(other, first)[0], self._chunk(other, last)[1]) for other in others)

    def _columns_of(self, group: int) -> _Group:
        chunks = [self._chunk(group, column) for column in range(self._metadata.num_columns)]
        return _Group(
            {start: column for column, (start, _) in enumerate(chunks)},
            {stop: column for column, (_, stop) in enumerate(chunks)},
        )

    def _chunk(self, group: int, column: int) -> tuple[int, int]:
        chunk = self._metadata.row_group(group).column(column)
        start = chunk.data_page_offset
        if chunk.dictionary_page_offset is not None:
            start = min(start, chunk.dictionary_page_offset)
        return start, start + chunk.total_compressed_size
