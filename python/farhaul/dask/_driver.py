"""The loop that runs a copy between workers, on a thread of the program that asked for it.

::

    pairs ─▶ sizes ─▶ batches ─▶ tasks on workers ─▶ outcomes ─▶ reports
                        ▲                               │
                        └── after a failure, or with its worker ──┘

| part | owns |
| --- | --- |
| `Driver` | which batches wait, and which tasks run |
| `_cluster` | the workers, their keys and servers |
| `_ledger` | what has become of each pair |
| `_shown` | tasks that have ended, for Dask's dashboard |
"""

from __future__ import annotations

import queue
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._errors import Error, _error
from . import _agent, _task
from ._agent import Served
from ._cluster import Cluster
from ._distributed import Client, Future
from ._ledger import Ledger
from ._plan import Batch, Pair, batches
from ._report import CopyReport, FileReport, Progress
from ._settings import Settings
from ._shown import Shown
from ._sizes import sizes

_LOOK = 0.5
"""Seconds between two looks at which workers there are."""
_WAIT = 0.1
"""Longest wait for a task that ends, in seconds, before the driver looks at what is due."""
_RENEWAL = _agent.LEASE / 6
"""Seconds between two words to the workers that the driver is there."""
_PAUSES = (0.5, 1.0, 2.0, 5.0)
"""Seconds before the second attempt, the third, and so on; the last one for all further ones."""
_FINAL = {
    "NOT_FOUND",
    "IS_A_DIRECTORY",
    "NOT_A_DIRECTORY",
    "PERMISSION_DENIED",
    "NOT_PERMITTED",
    "USAGE",
    "UNSUPPORTED",
}
"""Failures that another attempt would repeat."""


@dataclass
class _Work:
    """A batch, and what has become of it."""

    batch: Batch
    failures: int = 0
    due: float = 0.0
    """When it may begin."""
    homeless_since: float | None = None
    """Since when one of its ends has had no worker."""


@dataclass
class _Running:
    """A task that Dask has."""

    work: _Work
    id: str
    worker: str
    sink: str | None
    """The worker that serves. `None` if a server outside does."""
    future: Future
    began: bool = False
    bytes: int = 0
    is_left: bool = False
    """Whether one of its workers was lost."""

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return self.work.batch.pairs


class Driver:
    """Runs one copy. Its results go to ``say``."""

    def __init__(
        self, pairs: Sequence[Pair], client: Client, settings: Settings, say: Callable[[FileReport | Progress], None]
    ) -> None:
        self._session = uuid.uuid4().hex
        self._client = client
        self._settings = settings
        self._cluster = Cluster(client, self._session, pairs, settings)
        self._ledger = Ledger(pairs, say)
        self._waiting: list[_Work] = []
        self._running: dict[str, _Running] = {}
        self._ended: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._cancelled = threading.Event()
        self._shown = Shown()
        self._tasks = 0
        self._moved_bytes = 0
        """What nobody else counts: of servers outside, and of sinks that were lost."""
        self._sent_to: Counter[str] = Counter()
        """What was sent to the sinks that will tell it themselves, if they live."""
        self._next_look = self._next_renewal = 0.0

    def cancel(self) -> None:
        """Ends it soon, with the copies on the workers. May be called from any thread."""
        self._cancelled.set()

    def run(self) -> CopyReport:
        """Runs it to its end."""
        topic = _agent.topic_of(self._session)
        self._client.subscribe_topic(topic, self._on_event)
        try:
            self._cluster.look()
            pairs = self._ledger.pairs.values()
            self._ledger.sizes = sizes(self._client, self._cluster, pairs, self._cancelled.is_set)
            planned = batches(pairs, self._ledger.sizes, self._settings.batch_bytes)
            if self._settings.dry_run:
                self._list(planned)
            else:
                self._cluster.prepare_all()
                self._waiting = [_Work(batch) for batch in planned]
            while (self._waiting or self._running) and not self._cancelled.is_set():
                self._step()
        finally:
            try:
                self._end()
            finally:
                self._client.unsubscribe_topic(topic)
        return self._ledger.report(self._moved_bytes)

    def _list(self, planned: Iterable[Batch]) -> None:
        for batch in planned:
            worker = self._cluster.choose(batch.runs_at, Counter())
            name = self._cluster.name(worker) if worker else None
            for pair in batch.pairs:
                self._ledger.finish(pair.index, "planned", bytes=self._ledger.sizes.get(pair.index), worker=name)

    def _step(self) -> None:
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + _LOOK
            self._cluster.look()
            self._leave_lost_workers()
            running = self._running.values()
            self._ledger.tell_progress(sum(task.bytes for task in running), sum(task.began for task in running))
        if now >= self._next_renewal:
            self._next_renewal = now + _RENEWAL
            self._cluster.renew()
        self._start_due(now)
        self._take_ended()

    def _end(self) -> None:
        for running in self._running.values():
            running.future.cancel()
        self._shown.clear()
        self._cluster.look()
        self._moved_bytes += self._cluster.end()

    # Batches become tasks.

    def _start_due(self, now: float) -> None:
        """Submits the batches whose time has come, as far as their sinks have room."""
        load = Counter(running.worker for running in self._running.values())
        busy = Counter(running.sink for running in self._running.values() if running.sink is not None)
        waiting, self._waiting = self._waiting, []
        for work in waiting:
            if now < work.due or not self._try_to_start(work, load, busy, now):
                self._waiting.append(work)

    def _try_to_start(self, work: _Work, load: Counter[str], busy: Counter[str], now: float) -> bool:
        """Submits a batch. Returns whether it need not wait any more."""
        serves_at = work.batch.serves_at
        source = self._cluster.choose(work.batch.runs_at, load)
        sink = self._cluster.choose(serves_at, busy) if serves_at is not None else None
        if source is None or (sink is None and serves_at is not None):
            return self._is_given_up(work, now)
        work.homeless_since = None
        if sink is not None and busy[sink] >= self._settings.per_sink:
            return False
        try:
            served = self._cluster.prepare(source, sink)
        except Error as error:
            return self._is_last(work, error)
        except Exception as error:  # Whatever a worker or the path to it has. The next look tells whether it is lost.
            return self._is_last(work, _lost(f"{source} or {sink} does not answer: {error!r}"))
        load[source] += 1
        if sink is not None:
            busy[sink] += 1
        self._submit(work, source, sink, served)
        return True

    def _submit(self, work: _Work, source: str, sink: str | None, served: Served | None) -> None:
        self._tasks += 1
        task = f"{self._session}-{self._tasks}"
        sizes = self._ledger.sizes
        items = tuple(_task.Item(pair.index, pair.source, pair.sink, sizes.get(pair.index)) for pair in work.batch.pairs)
        future = self._client.submit(
            _task.copy_batch,
            _task.Job(self._session, task, items, served, dict(self._settings.options)),
            # Dask's dashboard has one bar for all keys with the same words at their begin, and no page for one with a blank.
            key=f"farhaul-copy-{self._tasks}_{work.batch.route.replace(' ', '_')}-{self._session}",
            workers=[source],
            allow_other_workers=False,
            resources=dict(self._settings.resources) or None,
            priority=self._settings.priority,
            retries=0,
            pure=False,
        )
        self._running[task] = _Running(work, task, source, sink, future)
        future.add_done_callback(lambda _: self._ended.put(task))

    def _is_last(self, work: _Work, error: Error) -> bool:
        """Counts a failure. Returns whether there is no further attempt. Otherwise, the batch is due after a pause."""
        work.failures += 1
        if error.code in _FINAL or work.failures > self._settings.retries:
            self._ledger.failed(work.batch.pairs, error)
            return True
        work.due = time.monotonic() + _PAUSES[min(work.failures, len(_PAUSES)) - 1]
        return False

    def _is_given_up(self, work: _Work, now: float) -> bool:
        """Whether one end of a batch has been without a worker for too long."""
        work.homeless_since = work.homeless_since or now
        if now - work.homeless_since < self._settings.patience:
            return False
        places = [place for place in (work.batch.runs_at, work.batch.serves_at) if place is not None]
        missing = " and ".join(repr(place) for place in places if not self._cluster.at(place))
        error = _lost(f"the cluster has had no worker {missing} for {self._settings.patience:g} s")
        self._ledger.failed(work.batch.pairs, error)
        return True

    # Tasks end.

    def _take_ended(self) -> None:
        """Waits a moment for tasks that end."""
        try:
            task = self._ended.get(timeout=_WAIT)
            while True:
                if (running := self._running.pop(task, None)) is not None:
                    self._on_ended(running)
                task = self._ended.get_nowait()
        except queue.Empty:
            pass

    def _on_ended(self, running: _Running) -> None:
        # A task with outcomes has begun, whether or not its word has come.
        running.began |= running.future.status == "finished"
        if running.began:
            self._ledger.begun(pair.index for pair in running.pairs)
        if running.future.status != "finished":
            cause = running.future.exception() if running.future.status == "error" else None
            error = _error("FAILED", f"the task failed: {cause!r}", None, None) if cause else _lost("the task was lost")
            self._repeat(running, running.pairs, error)
            return
        outcomes: list[_task.Outcome] = running.future.result()
        self._shown.add(running.worker, len(outcomes), running.future)
        failed: list[_task.Outcome] = []
        for outcome in outcomes:
            self._ledger.moved(outcome)
            if running.sink is not None and self._cluster.serves(running.sink):
                self._sent_to[running.sink] += outcome.moved_bytes
            else:
                self._moved_bytes += outcome.moved_bytes
            if outcome.status == "failed" and outcome.code not in _FINAL:
                failed.append(outcome)
            else:
                self._ledger.ended(outcome, self._cluster.name(running.worker))
        if failed:
            error = _error(failed[-1].code or "FAILED", failed[-1].error or "", None, None)
            self._repeat(running, [self._ledger.pairs[outcome.index] for outcome in failed], error)

    def _repeat(self, running: _Running, pairs: Sequence[Pair], error: Error) -> None:
        """Puts pairs back, for another attempt if there may be one. A task that had not begun has failed at nothing."""
        size = sum(self._ledger.sizes.get(pair.index, 0) for pair in pairs)
        work = _Work(Batch(tuple(pairs), size), running.work.failures)
        if (running.is_left and not running.began) or not self._is_last(work, error):
            self._waiting.append(work)

    # Workers are lost.

    def _leave_lost_workers(self) -> None:
        for address in self._cluster.lost():
            mine = [running for running in self._running.values() if running.worker == address]
            # Its sessions hold files at the sinks. They end before its successor goes on with these.
            sessions = Counter(running.sink for running in mine if running.began)
            has_served = self._cluster.leave(address, sessions)
            self._shown.leave(address)
            for running in mine:
                self._leave_task(running)
            if has_served:
                # What it has counted is lost with it, so the words of its senders count.
                self._moved_bytes += self._sent_to.pop(address, 0)
                self._end_senders_to(address)

    def _leave_task(self, running: _Running) -> None:
        self._running.pop(running.id)
        running.is_left = True
        running.future.cancel()
        if running.began:
            self._ledger.begun(pair.index for pair in running.pairs)
        self._repeat(running, running.pairs, _lost(f"the worker {running.worker} was lost"))

    def _end_senders_to(self, sink: str) -> None:
        """Ends tasks that would notice the loss of their sink by a silence of half a minute."""
        senders: dict[str, list[str]] = {}
        for running in self._running.values():
            if running.sink == sink:
                running.is_left = True
                senders.setdefault(running.worker, []).append(running.id)
        for worker, tasks in senders.items():
            self._cluster.cancel(worker, tasks)

    def _on_event(self, event: tuple[float, Mapping[str, Any]]) -> None:
        """Takes what a worker tells. Runs on the event loop of the client."""
        _, told = event
        if (running := self._running.get(told.get("began", ""))) is not None:
            running.began = True
        for task, moved in told.get("running", {}).items():
            if (running := self._running.get(task)) is not None:
                running.began, running.bytes = True, moved


def _lost(why: str) -> Error:
    return _error("PEER_LOST", why, None, None)
