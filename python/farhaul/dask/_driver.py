"""The loop that runs a copy between workers, on a thread of the program that asked for it.

::

    pairs ─▶ sizes ─▶ batches ─▶ tasks on workers ─▶ outcomes ─▶ reports
                        ▲                               │
                        └── after a failure, or with its worker ──┘

The driver repeats tasks, and not Dask. A task needs a server that runs, which is no value that Dask could make again: after the loss of
a worker, the server is opened at its successor, and the sessions of a lost source are ended before anybody goes on with its files.
"""

from __future__ import annotations

import queue
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .._errors import Error, _error
from .._options import ConnectionOptions
from . import _agent, _task
from ._agent import Served, Service
from ._places import Worker, any_port_of, workers_at, workers_of
from ._plan import Batch, Pair, batches
from ._report import CopyReport, FileReport, Progress, Status

if TYPE_CHECKING:
    from distributed import Client

_LOOK = 0.5
"""Seconds between two looks at which workers there are."""
_RENEWAL = _agent.LEASE / 6
"""Seconds between two words to the workers that the driver is there."""
_PAUSES = (0.5, 1.0, 2.0, 5.0)
"""Seconds before the second attempt, the third, and so on; the last one for all further ones."""
_MEASURED = 5000
"""Paths in one task that asks for sizes."""
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
_OF_THE_COPY = {"key", "host_key", "host_key_policy", "authorized_keys", "any_client"}
"""Options that the driver sets where a worker serves."""


@dataclass(frozen=True)
class Settings:
    """How pairs are copied."""

    retries: int = 3
    patience: float = 120.0
    per_sink: int = 16
    batch_bytes: int = 256 << 20
    resources: Mapping[str, float] = field(default_factory=dict)
    listen: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0
    dry_run: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class _Work:
    """A batch, and what has become of it."""

    batch: Batch
    attempts: int = 0
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
    """The address of the worker that serves. `None` if a server outside does."""
    future: Any
    began: bool = False
    bytes: int = 0
    is_left: bool = False
    """Whether one of its workers was lost."""


class Driver:
    """Runs one copy. Its results go to ``say``."""

    def __init__(
        self, pairs: Sequence[Pair], client: Client, settings: Settings, say: Callable[[FileReport | Progress], None]
    ) -> None:
        # Much of it has no types.
        self._client: Any = client
        self._settings = settings
        self._say = say
        self._session = uuid.uuid4().hex
        self._pairs = {pair.index: pair for pair in pairs}
        self._sizes: dict[int, int] = {}
        self._reports: dict[int, FileReport] = {}
        self._attempts: Counter[int] = Counter()
        self._moved: Counter[int] = Counter()
        self._waiting: list[_Work] = []
        self._running: dict[str, _Running] = {}
        self._ended: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._workers: dict[str, Worker] = {}
        self._keys: dict[str, str] = {}
        self._served: dict[str, Served] = {}
        self._admitted: dict[str, set[str]] = {}
        self._found: dict[str, list[str]] = {}
        self._sent_to: Counter[str] = Counter()
        self._moved_bytes = 0
        self._tasks = 0
        self._cancelled = threading.Event()
        self._start = time.monotonic()
        self._next_look = self._next_renewal = 0.0

    def cancel(self) -> None:
        """Ends it soon, with the copies on the workers. May be called from any thread."""
        self._cancelled.set()

    def run(self) -> CopyReport:
        """Runs it to its end."""
        topic = _agent.topic_of(self._session)
        self._client.subscribe_topic(topic, self._on_event)
        try:
            self._look()
            self._measure()
            self._waiting = [_Work(batch) for batch in batches(self._pairs.values(), self._sizes, self._settings.batch_bytes)]
            if self._settings.dry_run:
                self._plan_only()
            while (self._waiting or self._running) and not self._cancelled.is_set():
                self._step()
        finally:
            try:
                self._end()
            finally:
                self._client.unsubscribe_topic(topic)
        files = [self._reports.get(index) or self._report(index, "cancelled") for index in self._pairs]
        return CopyReport(files, time.monotonic() - self._start, self._moved_bytes)

    # The loop.

    def _step(self) -> None:
        now = time.monotonic()
        if now >= self._next_look:
            self._look()
            self._leave_lost_workers()
            self._say(self._progress())
        if now >= self._next_renewal:
            self._next_renewal = now + _RENEWAL
            self._on_workers(_agent.renew, set(self._keys) & set(self._workers))
        self._start_due(now)
        self._take_ended()

    def _look(self) -> None:
        """Asks which workers there are."""
        self._next_look = time.monotonic() + _LOOK
        try:
            info = self._client.scheduler_info(n_workers=-1)
        except TypeError:  # Older versions tell of all.
            info = self._client.scheduler_info()
        self._workers = workers_of(info)
        self._found.clear()

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
        source = self._choose(work.batch.runs_at, load)
        sink = self._choose(serves_at, busy) if serves_at is not None else None
        if source is None or (sink is None and serves_at is not None):
            return self._is_given_up(work, now)
        work.homeless_since = None
        if sink is not None and busy[sink] >= self._settings.per_sink:
            return False
        try:
            served = self._prepare(source, sink)
        except Error as error:
            return self._is_last(work, error)
        except Exception as error:  # Whatever a worker or the way to it has. The next look tells whether it is lost.
            return self._is_last(work, _lost(f"{source} or {sink} does not answer: {error}"))
        load[source] += 1
        if sink is not None:
            busy[sink] += 1
        self._submit(work, source, sink, served)
        return True

    def _is_last(self, work: _Work, error: Error) -> bool:
        """Counts an attempt that failed. Returns whether it was the last one. Otherwise, the batch is due after a pause."""
        work.attempts += 1
        if error.code in _FINAL or work.attempts > self._settings.retries:
            self._fail(work.batch.pairs, error)
            return True
        work.due = time.monotonic() + _pause(work.attempts)
        return False

    def _is_given_up(self, work: _Work, now: float) -> bool:
        """Whether one end of a batch has been without a worker for too long."""
        work.homeless_since = work.homeless_since or now
        if now - work.homeless_since < self._settings.patience:
            return False
        places = [place for place in (work.batch.runs_at, work.batch.serves_at) if place is not None]
        missing = " and ".join(repr(place) for place in places if not self._at(place))
        self._fail(work.batch.pairs, _lost(f"the cluster has had no worker {missing} for {self._settings.patience:g} s"))
        return True

    def _at(self, host: str) -> list[str]:
        if host not in self._found:
            self._found[host] = [worker.address for worker in workers_at(host, self._workers.values())]
        return self._found[host]

    def _choose(self, host: str, load: Mapping[str, int]) -> str | None:
        """The worker there that has least to do."""
        return min(self._at(host), key=lambda address: load[address], default=None)

    def _submit(self, work: _Work, source: str, sink: str | None, served: Served | None) -> None:
        self._tasks += 1
        name = f"{self._session}-{self._tasks}"
        pairs = work.batch.pairs
        items = tuple(_task.Item(pair.index, pair.source, pair.sink, self._sizes.get(pair.index)) for pair in pairs)
        job = _task.Job(self._session, name, items, served, dict(self._settings.options))
        future = self._client.submit(
            _task.copy_batch,
            job,
            key=f"copy {work.batch.route.replace('-', '_')}-{name}",
            workers=[source],
            allow_other_workers=False,
            resources=dict(self._settings.resources) or None,
            priority=self._settings.priority,
            retries=0,
            pure=False,
        )
        self._running[name] = _Running(work, name, source, sink, future)
        future.add_done_callback(lambda _: self._ended.put(name))

    def _take_ended(self) -> None:
        """Waits a moment for tasks that end."""
        try:
            name: str | None = self._ended.get(timeout=_LOOK / 4)
            while name is not None:
                if (running := self._running.pop(name, None)) is not None:
                    self._on_ended(running)
                name = None if self._ended.empty() else self._ended.get_nowait()
        except queue.Empty:
            pass

    def _on_ended(self, running: _Running) -> None:
        if running.future.status != "finished":
            cause = running.future.exception() if running.future.status == "error" else None
            error = _error("FAILED", f"the task failed: {cause!r}", None, None) if cause else _lost("the task was lost")
            self._repeat(running, running.work.batch.pairs, error)
            return
        outcomes: list[_task.Outcome] = running.future.result()
        failed: list[Pair] = []
        last: _task.Outcome | None = None
        for outcome in outcomes:
            self._count(running, outcome)
            if outcome.status == "failed" and outcome.code not in _FINAL:
                failed.append(self._pairs[outcome.index])
                last = outcome
            else:
                self._finish_by(running, outcome)
        if last is not None:
            self._repeat(running, failed, _error(last.code or "FAILED", last.error or "", None, None))

    def _count(self, running: _Running, outcome: _task.Outcome) -> None:
        self._attempts[outcome.index] += running.began
        self._moved[outcome.index] += outcome.moved_bytes
        if running.sink is not None and running.sink in self._served:
            # Its server counts as well, and tells at the end.
            self._sent_to[running.sink] += outcome.moved_bytes
        else:
            self._moved_bytes += outcome.moved_bytes

    def _finish_by(self, running: _Running, outcome: _task.Outcome) -> None:
        self._finish(
            outcome.index,
            outcome.status,
            bytes=outcome.bytes,
            files=outcome.files,
            seconds=outcome.seconds,
            digest=outcome.digest,
            worker=self._name(running.worker),
            code=outcome.code,
            error=outcome.error,
        )

    def _repeat(self, running: _Running, pairs: Sequence[Pair], error: Error) -> None:
        """Puts pairs back, for another attempt if there may be one. A task that had not begun has failed at nothing."""
        size = sum(self._sizes.get(pair.index, 0) for pair in pairs)
        work = _Work(Batch(tuple(pairs), size), running.work.attempts)
        if (running.is_left and not running.began) or not self._is_last(work, error):
            self._waiting.append(work)

    # Lost workers.

    def _leave_lost_workers(self) -> None:
        """Puts back the tasks of workers that are gone, and ends those that send to one."""
        lost = {running.worker for running in self._running.values()} - set(self._workers)
        lost |= set(self._keys) - set(self._workers)
        for address in lost:
            self._leave_source(address)
            self._leave_sink(address)

    def _leave_source(self, address: str) -> None:
        """Its sessions hold files at the sinks: they are ended, so that its successor can go on with these."""
        mine = [running for running in self._running.values() if running.worker == address]
        key = self._keys.pop(address, None)
        for sink, admitted in self._admitted.items():
            if key in admitted and sink in self._workers:
                admitted.discard(key)
                began = sum(running.began for running in mine if running.sink == sink)
                self._on_workers(_agent.revoke, {sink}, key, began)
        for running in mine:
            self._running.pop(running.id)
            running.is_left = True
            running.future.cancel()
            self._attempts.update(pair.index for pair in running.work.batch.pairs if running.began)
            self._repeat(running, running.work.batch.pairs, _lost(f"the worker {address} was lost"))

    def _leave_sink(self, address: str) -> None:
        """Tasks that send to it would notice by a silence of half a minute."""
        if self._served.pop(address, None) is None:
            return
        self._admitted.pop(address, None)
        # What it has counted is lost, so the words of its senders count.
        self._moved_bytes += self._sent_to.pop(address, 0)
        senders: dict[str, list[_Running]] = {}
        for running in self._running.values():
            if running.sink == address:
                running.is_left = True
                senders.setdefault(running.worker, []).append(running)
        for worker, mine in senders.items():
            self._on_workers(_agent.cancel, {worker}, [running.id for running in mine])

    # Workers.

    def _prepare(self, source: str, sink: str | None) -> Served | None:
        """Makes keys at both ends, and opens the server. Nothing that is there already."""
        ends = {source} | ({sink} if sink is not None else set())
        if new := ends - set(self._keys):
            for address, key in self._on_workers(_agent.begin, new).items():
                if isinstance(key, BaseException):
                    raise key
                self._keys[address] = key
        if sink is None:
            return None
        key = self._keys[source]
        if sink not in self._served:
            service = self._service(sink)
            served = self._on_workers(_agent.open_server, {sink}, service, [key])[sink]
            if isinstance(served, BaseException):
                raise served
            self._served[sink], self._admitted[sink] = served, {key}
        elif key not in self._admitted[sink]:
            answer = self._on_workers(_agent.admit, {sink}, [key])[sink]
            if isinstance(answer, BaseException):
                raise answer
            self._admitted[sink].add(key)
        return self._served[sink]

    def _service(self, sink: str) -> Service:
        worker = self._workers[sink]
        hosts = {pair.sink.host for pair in self._pairs.values() if pair.sink.host and worker.is_at(pair.sink.host)}
        paths = [pair.sink.path for pair in self._pairs.values() if pair.sink.host in hosts and pair.source.host is not None]
        listens = [self._settings.listen[host] for host in sorted(hosts) if host in self._settings.listen]
        options = self._settings.options
        names = set(ConnectionOptions.__annotations__) - _OF_THE_COPY
        return Service(
            directories=tuple(sorted({path.rpartition("/")[0] or "/" for path in paths})),
            listen=listens[0] if listens else any_port_of(sink),
            options={name: options[name] for name in names & set(options)},
            may_delete=bool(options.get("delete")),
        )

    def _on_workers(self, function: Callable[..., Any], workers: Iterable[str], *arguments: Any) -> dict[str, Any]:
        """Calls a function of `_agent` on workers. Failures are among the results."""
        addresses = [address for address in workers if address in self._workers]
        if not addresses:
            return {}
        answers: dict[str, Any] = self._client.run(
            function, self._session, *arguments, workers=addresses, on_error="return"
        )
        return answers

    def _end(self) -> None:
        """Ends everything on the workers, and counts what their servers have received."""
        for running in self._running.values():
            running.future.cancel()
        self._look()
        for answer in self._on_workers(_agent.end, set(self._keys)).values():
            self._moved_bytes += answer if isinstance(answer, int) else 0

    # Sizes, plans, progress.

    def _measure(self) -> None:
        """Asks the sources how large their files are. Of those that do not answer, no size is known."""
        by_host: dict[str, list[Pair]] = {}
        for pair in self._pairs.values():
            if pair.source.host is not None:
                by_host.setdefault(pair.source.host, []).append(pair)
        asked: list[tuple[str, Sequence[Pair], Any]] = []
        for host, pairs in by_host.items():
            worker = self._choose(host, Counter(address for address, _, _ in asked))
            for first in range(0, len(pairs) if worker else 0, _MEASURED):
                assert worker is not None
                some = pairs[first : first + _MEASURED]
                key = f"sizes {host.replace('-', '_')}-{uuid.uuid4().hex}"
                paths = [pair.source.path for pair in some]
                future = self._client.submit(_task.measure, paths, key=key, workers=[worker], priority=100, pure=False)
                asked.append((worker, some, future))
                future.add_done_callback(lambda _: self._ended.put(""))
        while any(not future.done() and worker in self._workers for worker, _, future in asked):
            if self._cancelled.is_set():
                break
            try:
                self._ended.get(timeout=_LOOK)
            except queue.Empty:
                self._look()
        for _, asked_for, future in asked:
            if future.status == "finished":
                told = zip(asked_for, future.result(), strict=True)
                self._sizes.update({pair.index: size for pair, size in told if size is not None})
            else:
                future.cancel()

    def _plan_only(self) -> None:
        for work in self._waiting:
            worker = self._choose(work.batch.runs_at, Counter())
            for pair in work.batch.pairs:
                size, name = self._sizes.get(pair.index), self._name(worker) if worker else None
                self._finish(pair.index, "planned", bytes=size, worker=name)
        self._waiting = []

    def _progress(self) -> Progress:
        under_way = sum(running.bytes for running in self._running.values())
        return Progress(
            bytes=sum(report.bytes or 0 for report in self._reports.values() if report.is_done) + under_way,
            total_bytes=sum(self._sizes.values()),
            files=len(self._reports),
            total_files=len(self._pairs),
            running=sum(running.began for running in self._running.values()),
            seconds=time.monotonic() - self._start,
        )

    def _on_event(self, event: tuple[float, Mapping[str, Any]]) -> None:
        """Takes what a worker tells. Runs on the event loop of the client."""
        _, told = event
        if (running := self._running.get(told.get("began", ""))) is not None:
            running.began = True
        for name, moved in told.get("running", {}).items():
            if (running := self._running.get(name)) is not None:
                running.began, running.bytes = True, moved

    def _name(self, address: str) -> str:
        worker = self._workers.get(address)
        return worker.name if worker else address

    def _report(self, index: int, status: Status, **about: Any) -> FileReport:
        pair = self._pairs[index]
        return FileReport(
            source=str(pair.source),
            sink=str(pair.sink),
            status=status,
            attempts=self._attempts[index],
            moved_bytes=self._moved[index],
            **about,
        )

    def _fail(self, pairs: Iterable[Pair], error: Error) -> None:
        for pair in pairs:
            self._finish(pair.index, "failed", code=error.code, error=str(error))

    def _finish(self, index: int, status: Status, **about: Any) -> None:
        report = self._reports[index] = self._report(index, status, **about)
        self._say(report)


def _pause(attempts: int) -> float:
    return _PAUSES[min(attempts, len(_PAUSES)) - 1]


def _lost(why: str) -> Error:
    return _error("PEER_LOST", why, None, None)
