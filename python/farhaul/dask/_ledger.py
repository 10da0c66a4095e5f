"""What has become of each pair."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .._errors import Error
from ._plan import Pair
from ._report import CopyReport, FileReport, Progress, Status
from ._task import Outcome


class Ledger:
    """The attempts at each pair, what they moved, and their ends, which it tells to ``say``."""

    def __init__(self, pairs: Sequence[Pair], say: Callable[[FileReport | Progress], None]) -> None:
        self.pairs: Mapping[int, Pair] = {pair.index: pair for pair in pairs}
        self.sizes: dict[int, int] = {}
        """Those that are known."""
        self._say = say
        self._reports: dict[int, FileReport] = {}
        self._attempts: Counter[int] = Counter()
        self._moved: Counter[int] = Counter()
        self._start = time.monotonic()

    def begun(self, indices: Iterable[int]) -> None:
        """Counts an attempt."""
        self._attempts.update(indices)

    def moved(self, outcome: Outcome) -> None:
        """Counts the bytes of an attempt."""
        self._moved[outcome.index] += outcome.moved_bytes

    def ended(self, outcome: Outcome, worker: str) -> None:
        """Takes an outcome for the end of its pair."""
        self.finish(
            outcome.index,
            outcome.status,
            bytes=outcome.bytes,
            files=outcome.files,
            seconds=outcome.seconds,
            digest=outcome.digest,
            worker=worker,
            code=outcome.code,
            error=outcome.error,
        )

    def failed(self, pairs: Iterable[Pair], error: Error) -> None:
        """Ends pairs with an error."""
        for pair in pairs:
            self.finish(pair.index, "failed", code=error.code, error=str(error))

    def finish(self, index: int, status: Status, **about: Any) -> None:
        """Ends a pair."""
        report = self._reports[index] = self._report(index, status, **about)
        self._say(report)

    def tell_progress(self, under_way: int, running: int) -> None:
        """Tells how far the copy is, with so many bytes of so many tasks."""
        done = sum(report.bytes or 0 for report in self._reports.values() if report.is_done)
        progress = Progress(
            bytes=done + under_way,
            total_bytes=sum(self.sizes.values()),
            files=len(self._reports),
            total_files=len(self.pairs),
            running=running,
            seconds=self._seconds(),
        )
        self._say(progress)

    def report(self, moved_bytes: int) -> CopyReport:
        """The report of the copy. Pairs that have not ended were cancelled."""
        files = [self._reports.get(index) or self._report(index, "cancelled") for index in self.pairs]
        return CopyReport(files, self._seconds(), moved_bytes)

    def _seconds(self) -> float:
        return time.monotonic() - self._start

    def _report(self, index: int, status: Status, **about: Any) -> FileReport:
        pair = self.pairs[index]
        return FileReport(
            source=str(pair.source),
            sink=str(pair.sink),
            status=status,
            attempts=self._attempts[index],
            moved_bytes=self._moved[index],
            **about,
        )
