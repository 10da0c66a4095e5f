"""The tasks of a copy, as workers run them."""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .._errors import Error
from .._farhaul import RunningCopy
from ._agent import Agent, Served, agent_of, topic_of
from ._distributed import this_worker
from ._places import Place
from ._report import Status

_ALONE_BYTES = 64 << 20
"""A file from this size on has a connection of its own, so that its figures are its own."""
_PLAIN_NAME = re.compile(r"[ -\[\]-~]+")
"""A name that reports show as it is."""


@dataclass(frozen=True)
class Item:
    """A pair, as a task sees it."""

    index: int
    source: Place
    sink: Place
    size: int | None
    """`None` if it is no file, or nobody knows."""


@dataclass(frozen=True)
class Job:
    """What a task is to do."""

    session: str
    batch: str
    items: tuple[Item, ...]
    served: Served | None
    """The server of the sink. `None` if it is outside of the cluster, or the source is."""
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What an attempt made of a pair."""

    index: int
    status: Status
    bytes: int | None = None
    files: int = 1
    seconds: float | None = None
    digest: str | None = None
    moved_bytes: int = 0
    code: str | None = None
    error: str | None = None


def measure(paths: Sequence[str]) -> list[int | None]:
    """The sizes of files of this worker's host. `None` for everything else, and for what cannot be read: the copy says why."""
    return [_size(path) for path in paths]


def _size(path: str) -> int | None:
    try:
        about = os.stat(path)
    except (OSError, ValueError):
        return None
    return about.st_size if stat.S_ISREG(about.st_mode) else None


def copy_batch(job: Job) -> list[Outcome]:
    """Copies the pairs of a job, one connection after the other. Failures are outcomes, and no exceptions: their figures count."""
    worker = this_worker()
    agent = agent_of(worker, job.session)
    if agent is None:
        return [_failed(item, "TERMINATED", "this worker has ended its part of the copy") for item in job.items]
    worker.log_event(topic_of(job.session), {"began": job.batch, "worker": worker.address})
    return Attempt(job, agent).run()


class Attempt:
    """One attempt at the pairs of a job."""

    def __init__(self, job: Job, agent: Agent) -> None:
        self._job = job
        self._agent = agent
        self._done_bytes = 0
        options = dict(job.options)
        if job.served and job.served.key is not None:
            options |= {"key": agent.key_file, "host_key": job.served.key}
        self._options = options

    def run(self) -> list[Outcome]:
        refused = self._job.served.refused if self._job.served else {}
        unreadable = [failure for item in self._job.items if (failure := _unreadable(item, refused)) is not None]
        outcomes = list(unreadable)
        missing = {outcome.index for outcome in unreadable}
        for items in _sessions(item for item in self._job.items if item.index not in missing):
            outcomes += self._session(items)
        return outcomes

    def _session(self, items: Sequence[Item]) -> list[Outcome]:
        error: Error | None = None
        report = None
        try:
            running = RunningCopy(*self._places(items), list_files=True, **self._options)
        except Error as refused:
            return [_failed(item, refused.code, str(refused)) for item in items]
        try:
            self._begin(running)
            report = running.wait(None)
        except Error as failure:
            error, report = failure, failure.report
        finally:
            with self._agent.lock:
                self._agent.running.pop(self._job.batch, None)
        figures = report.as_dict() if report is not None else {}
        files = running.take_files()
        if len(items) == 1:
            outcomes = [_alone(items[0], files, figures, error)]
        else:
            outcomes = list(_together(items, files, figures, error))
        self._done_bytes += sum(outcome.bytes or 0 for outcome in outcomes)
        return outcomes

    def _begin(self, running: RunningCopy) -> None:
        with self._agent.lock:
            is_cancelled = self._agent.is_ended or self._job.batch in self._agent.cancelled
            if not is_cancelled:
                self._agent.running[self._job.batch] = (running, self._done_bytes)
        if is_cancelled:
            running.cancel()

    def _places(self, items: Sequence[Item]) -> tuple[list[str | Path], str | Path]:
        sink = items[0].sink
        if sink.host is None:
            target: str | Path = sink.path
        elif self._job.served is None:
            target = Path(sink.path)
            target.parent.mkdir(parents=True, exist_ok=True)
        elif len(items) == 1:
            target = self._job.served.url(sink.path)
        else:
            target = self._job.served.url(posixpath.dirname(sink.path)).rstrip("/") + "/"
        sources = [Path(item.source.path) if item.source.host is not None else item.source.path for item in items]
        return sources, target


def _unreadable(item: Item, refused: Mapping[str, tuple[str, str]]) -> Outcome | None:
    """The failure of an item whose source or directory is not there, before anything is connected for it."""
    if (reason := refused.get(item.sink.path.rpartition("/")[0] or "/")) is not None:
        code, why = reason
        return _failed(item, code, f"cannot make its directory: {why}")
    if item.source.host is None:
        return None
    try:
        os.stat(item.source.path)
    except OSError as error:
        code = "NOT_FOUND" if isinstance(error, FileNotFoundError) else "LOCAL_IO"
        return _failed(item, code, f"cannot read {item.source.path}: {error.strerror}")
    return None


def _sessions(items: Iterable[Item]) -> Iterable[Sequence[Item]]:
    """The items of each connection: small files together that keep their names and go into one directory."""
    together: dict[str, dict[str, Item]] = defaultdict(dict)
    alone: list[Item] = []
    for item in items:
        directory, name = posixpath.split(item.sink.path)
        is_small = item.size is not None and item.size < _ALONE_BYTES
        is_small &= item.source.host is not None and item.sink.host is not None
        keeps_name = posixpath.basename(item.source.path) == name and _PLAIN_NAME.fullmatch(name)
        if is_small and keeps_name and name not in together[directory]:
            together[directory][name] = item
        else:
            alone.append(item)
    yield from (tuple(group.values()) for group in together.values() if group)
    yield from ((item,) for item in alone)


def _alone(item: Item, files: list[dict[str, Any]], figures: dict[str, Any], error: Error | None) -> Outcome:
    moved = figures.get("moved_bytes") or 0
    if error is not None:
        codes = [file["code"] for file in files if file["status"] == "failed"]
        # Of one file, the failure says more than that of the copy.
        code = codes[0] if error.code == "FILES_FAILED" and len(codes) == 1 else error.code
        return replace(_failed(item, code, str(error)), moved_bytes=moved)
    done = [file for file in files if file["status"] in ("verified", "kept")]
    is_one_file = len(done) == 1 and not figures.get("directories")
    return Outcome(
        index=item.index,
        status="verified" if not done or any(file["status"] == "verified" for file in done) else "kept",
        bytes=sum(file["bytes"] for file in done),
        files=len(done),
        seconds=done[0]["seconds"] if is_one_file else figures.get("seconds"),
        digest=done[0].get("digest") if is_one_file else None,
        moved_bytes=moved,
    )


def _together(
    items: Sequence[Item], files: list[dict[str, Any]], figures: dict[str, Any], error: Error | None
) -> Iterable[Outcome]:
    ended = {posixpath.basename(file["path"]): file for file in files}
    moved = figures.get("moved_bytes") or 0
    sent = sum(file["bytes"] for file in files if file["status"] == "verified")
    for item in items:
        file = ended.get(posixpath.basename(item.sink.path))
        if file is not None and file["status"] in ("verified", "kept"):
            is_sent = file["status"] == "verified"
            yield Outcome(
                index=item.index,
                status=file["status"],
                bytes=file["bytes"],
                seconds=file["seconds"],
                digest=file.get("digest"),
                moved_bytes=round(min(moved, sent) * file["bytes"] / sent) if is_sent and sent else 0,
            )
        elif file is not None:
            yield _failed(item, file["code"], file["error"])
        elif error is not None:
            yield _failed(item, error.code, str(error))
        else:
            yield _failed(item, "FAILED", "the copy has not told what became of it")


def _failed(item: Item, code: str, why: str) -> Outcome:
    return Outcome(index=item.index, status="failed", code=code, error=why)
