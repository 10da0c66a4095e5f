"""Copies of many files between the workers of a cluster, as programs call them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Literal, Self, Unpack

from .._described import with_options
from .._errors import UsageError
from .._options import CopyOptions
from ._distributed import Client, current_client
from ._driver import Driver
from ._places import End
from ._plan import BATCH_BYTES, read_pairs
from ._report import CopyError, CopyReport, FileReport, Progress
from ._settings import Settings

Pairs = Iterable[tuple[End, End]] | Mapping[End, End]


class Copies:
    """A copy between workers that runs. It yields a `FileReport` for each pair, as they end.

    ::

        with farhaul.dask.begin(pairs, client) as copies:
            for file in copies:
                print(file.source, file.status)
        table = copies.report().to_dataframe()

    To leave the ``with`` statement early cancels it.
    """

    def __init__(self, driver: Driver, told: queue.SimpleQueue[FileReport | Progress | None]) -> None:
        self._driver = driver
        self._told = told
        self._report: CopyReport | None = None
        self._failure: BaseException | None = None
        self._is_read = False
        self.progress: Progress | None = None
        """How far it was when something was last heard of it."""
        self._thread = threading.Thread(target=self._run, name="farhaul-dask-copy", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._report = self._driver.run()
        except BaseException as failure:
            self._failure = failure
        finally:
            self._told.put(None)

    def __iter__(self) -> Iterator[FileReport]:
        for told in self.events():
            if isinstance(told, FileReport):
                yield told

    def events(self) -> Iterator[FileReport | Progress]:
        """The same, with the progress twice a second."""
        while not self._is_read:
            told = self._told.get()
            if told is None:
                self._is_read = True
                break
            if isinstance(told, Progress):
                self.progress = told
            yield told

    def report(self) -> CopyReport:
        """Waits for the end, and returns what was done. What the driver failed with is raised."""
        for _ in self.events():
            pass
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        assert self._report is not None, "a driver that has not failed has a report"
        return self._report

    def cancel(self) -> None:
        """Cancels it, with the copies on the workers. What is incomplete stays, so that the same pairs go on there."""
        self._driver.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.cancel()
        self._thread.join()


@with_options(CopyOptions)
def begin(
    pairs: Pairs,
    client: Client | None = None,
    *,
    resources: Mapping[str, float] | None = None,
    retries: int = 3,
    patience: float = 120.0,
    per_sink: int = 16,
    batch_bytes: int = BATCH_BYTES,
    listen: Mapping[str, str] | None = None,
    priority: int = 0,
    **options: Unpack[CopyOptions],
) -> Copies:
    """Begins what `copy` does, and returns at once: to see each file as it ends, or to cancel all.

    The arguments are those of `copy`.
    """
    if client is None:
        client = current_client()
    if client.asynchronous:
        message = "the client is asynchronous: use one that is not, and call this by asyncio.to_thread"
        raise UsageError("USAGE", message)
    read = read_pairs(pairs)
    for name in ("key", "host_key", "host_key_policy"):
        if name in options and any(pair.source.host is not None and pair.sink.host is not None for pair in read):
            raise UsageError("USAGE", f"'{name}' is for udt:// ends: workers make keys of their own for each copy")
    settings = Settings(
        retries=retries,
        patience=patience,
        per_sink=max(1, per_sink),
        batch_bytes=batch_bytes,
        resources=resources or {},
        listen=listen or {},
        priority=priority,
        dry_run=bool(options.pop("dry_run", False)),
        options=dict(options),
    )
    told: queue.SimpleQueue[FileReport | Progress | None] = queue.SimpleQueue()
    return Copies(Driver(read, client, settings, told.put), told)


@with_options(CopyOptions)
def copy(
    pairs: Pairs,
    client: Client | None = None,
    *,
    progress: Callable[[Progress], object] | None = None,
    errors: Literal["raise", "collect"] = "raise",
    resources: Mapping[str, float] | None = None,
    retries: int = 3,
    patience: float = 120.0,
    per_sink: int = 16,
    batch_bytes: int = BATCH_BYTES,
    listen: Mapping[str, str] | None = None,
    priority: int = 0,
    **options: Unpack[CopyOptions],
) -> CopyReport:
    """Copies files between the workers of a Dask cluster, verified by their digests, and returns what became of each.

    ``pairs`` are sources and sinks. Each is ``"HOST:/path"`` or ``("HOST", "/path")``, where HOST is the name or the address of a
    worker, a resource that workers declare, or a machine. One end of a pair may be ``udt://host:port/path``, a server outside of
    the cluster. The data goes from worker to worker, and never through the scheduler.

    - ``resources``: what each task takes of its worker's resources. ``{"nic": 1}``, with workers that declare as much, lets each
      of them run one task at a time.
    - ``retries``: how often a pair is tried again after a failure, or after the loss of a worker that copied it.
    - ``patience``: seconds to wait for a worker at an end that has none.
    - ``per_sink``: tasks that may send to one worker at a time.
    - ``batch_bytes``: bytes of small files in one task.
    - ``listen``: for a HOST of a sink, the address ``"host:port"`` where its worker serves, for instance of another network card. By
      default, that of the worker, and a free port.
    - ``priority``: of the tasks, as Dask has it.
    - ``dry_run``: copy nothing, and report the sizes.
    - ``errors``: whether to raise `CopyError` if some pairs were not copied, or only to report them. Either way, all others are.
    - ``progress`` is called twice a second. An exception that it raises, such as Ctrl-C, cancels the copy.

    The other keyword arguments are those of `farhaul.copy`, for every task.
    """
    copies = begin(
        pairs,
        client,
        resources=resources,
        retries=retries,
        patience=patience,
        per_sink=per_sink,
        batch_bytes=batch_bytes,
        listen=listen,
        priority=priority,
        **options,
    )
    with copies:
        for told in copies.events():
            if progress and isinstance(told, Progress):
                progress(told)
        report = copies.report()
    if errors == "raise" and report.failed:
        raise CopyError(report)
    return report
