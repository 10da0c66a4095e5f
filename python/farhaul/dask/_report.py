"""What a copy between workers did, file by file."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from .._errors import Error

Status = Literal["verified", "kept", "planned", "failed", "cancelled"]


@dataclass(frozen=True)
class FileReport:
    """What became of one pair."""

    source: str
    sink: str
    status: Status
    """``verified``: both ends computed the same digest. ``kept``: the sink had it. ``planned``: of a dry run."""
    bytes: int | None = None
    """Size of the content."""
    files: int = 1
    """Files in it, for a tree."""
    seconds: float | None = None
    """From its begin to its final name, in the last attempt."""
    digest: str | None = None
    """BLAKE3 of the content, as ``b3sum`` prints it. `None` for trees and for files that the sink had."""
    attempts: int = 0
    """Tasks that began it. More than one after a failure or a lost worker."""
    moved_bytes: int = 0
    """Bytes that crossed the network for it, as far as its tasks could tell. Small files of one task share theirs by size."""
    worker: str | None = None
    """The worker that ran the last attempt."""
    code: str | None = None
    """The name of the failure, as in ``Error.code``."""
    error: str | None = None
    """The failure in words."""

    @property
    def is_done(self) -> bool:
        """Whether the sink has the content."""
        return self.status in ("verified", "kept")


@dataclass(frozen=True)
class Progress:
    """How far a copy between workers is."""

    bytes: int
    """Bytes of files that are done or move."""
    total_bytes: int | None
    """Bytes of all files whose sizes are known. `None` before the sources have told."""
    files: int
    """Pairs that have ended."""
    total_files: int
    running: int
    """Tasks that run."""
    seconds: float


@dataclass(frozen=True)
class CopyReport:
    """What a copy between workers did."""

    files: list[FileReport] = field(default_factory=list)
    """One for each pair, in the order of the pairs."""
    seconds: float = 0.0
    moved_bytes: int = 0
    """Bytes of content that crossed the network, broken attempts included: as the receivers counted, or the senders where a
    receiver was lost."""

    @property
    def bytes(self) -> int:
        """Bytes of the files that the sinks have now."""
        return sum(file.bytes or 0 for file in self.files if file.is_done)

    @property
    def failed(self) -> list[FileReport]:
        """The pairs that were not copied."""
        return [file for file in self.files if file.status in ("failed", "cancelled")]

    @property
    def resent_bytes(self) -> int:
        """Bytes that crossed the network more often than once. A lower bound if a sink had parts of them before."""
        done = sum(file.bytes or 0 for file in self.files if file.status == "verified")
        return max(0, self.moved_bytes - done)

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each pair."""
        return [dataclasses.asdict(file) for file in self.files]

    def to_dataframe(self) -> Any:
        """One row for each pair, as a `DataFrame` of pandas."""
        pandas = importlib.import_module("pandas")
        return pandas.DataFrame(self.rows(), columns=[column.name for column in dataclasses.fields(FileReport)])

    def __iter__(self) -> Iterator[FileReport]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


class CopyError(Error):
    """Some pairs were not copied. ``copied`` tells what became of each."""

    copied: CopyReport

    def __init__(self, copied: CopyReport) -> None:
        failed = copied.failed
        first = failed[0]
        message = f"{len(failed)} of {len(copied)} pairs were not copied; {first.source} to {first.sink}: {first.error}"
        super().__init__(first.code or "FAILED", message, "copy the same pairs again: it goes on where this one ended")
        self.copied = copied

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.copied,))
