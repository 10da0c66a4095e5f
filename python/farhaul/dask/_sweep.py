"""Sweeps of the lab: each run of an experiment is a task."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from .._errors import Error, _error
from .._farhaul import StoredRuns
from ..lab import _axes, _named
from ._distributed import Client, Future, current_client


@dataclass(frozen=True)
class SweepReport:
    """What a sweep measured. Numbers are in base units: bit/s, seconds, packets, shares of one."""

    records: list[dict[str, Any]]
    """The runs: ``curve``, ``point``, ``seed``, ``metrics``, …, as in ``farhaul.lab.Result.records`` and without series."""
    axes: list[str]
    failed: list[dict[str, Any]]
    """The runs that failed: ``point``, ``seed``, ``error``."""

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each run: its curve, its place on each axis, its seed, and its metrics."""
        return [
            {"curve": record["curve"], **_place(record["point"]), "seed": record["seed"], **record["metrics"]}
            for record in self.records
        ]

    def to_dataframe(self) -> Any:
        """The same as a `DataFrame` of pandas."""
        return importlib.import_module("pandas").DataFrame(self.rows())


def lab_sweep(
    experiment: str | Mapping[str, Any],
    client: Client | None = None,
    *,
    axes: Mapping[str, Sequence[Any]],
    seeds: Sequence[int] = (1,),
    quick: bool = False,
    world: Literal["sim", "emu"] = "sim",
    tcp: str | None = None,
    controllers: Mapping[str, Any] | None = None,
    resources: Mapping[str, float] | None = None,
    retries: int = 2,
    store: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], object] | None = None,
    errors: Literal["raise", "collect"] = "raise",
) -> SweepReport:
    """Runs an experiment of the lab for each combination of values and seeds, as tasks of a Dask cluster.

    ``experiment``, ``axes``, ``quick``, ``world``, ``tcp`` and ``controllers`` are those of `farhaul.lab.run`. A scenario is passed as its
    text or as dictionaries, since the workers do not see files of this host.

    - ``seeds``: each is a task of its own, at each point.
    - ``resources``: what each task takes of its worker's resources. Runs in the world ``"emu"`` disturb each other: let each machine
      have one ``emulator``.
    - ``retries``: how often Dask repeats a task that fails, or whose worker is lost. A run in virtual time gives the same numbers each time.
    - ``store``: a folder of this host that keeps each run as it is told, as that of `farhaul.lab.run`. A sweep that is repeated makes only
      the runs that are missing there.
    - ``progress`` is called with the number of runs that have ended and of all.
    - ``errors``: whether to raise the first failure once all others have ended, or to report failures.
    """
    client = client or current_client()
    jobs = list(_jobs(axes, seeds))
    options = {"quick": quick, "world": world, "tcp": tcp, "controllers": controllers}
    name = f"farhaul-lab-{uuid.uuid4().hex}"
    outcomes: list[list[dict[str, Any]] | BaseException | None] = [None] * len(jobs)
    futures: dict[int, Future] = {}
    with _Kept(store, experiment, options) as kept:
        kept.describe(axes, seeds)
        try:
            for number, (point, seed) in enumerate(jobs):
                outcomes[number] = kept.records(point, seed)
                if outcomes[number] is None:
                    futures[number] = client.submit(
                        run_point,
                        experiment,
                        point,
                        seed,
                        options,
                        key=f"{name}-{number}",
                        resources=dict(resources) if resources else None,
                        retries=retries,
                        pure=False,
                    )
            known = len(jobs) - len(futures)
            if progress and known:
                progress(known, len(jobs))
            for done, (number, future) in enumerate(futures.items(), known + 1):
                error = future.exception()
                outcomes[number] = error if error is not None else kept.add(future.result())
                if progress:
                    progress(done, len(jobs))
        finally:
            for future in futures.values():
                future.cancel()
    records = [record for outcome in outcomes if isinstance(outcome, list) for record in outcome]
    failed = [
        {"point": point, "seed": seed, "error": outcome}
        for (point, seed), outcome in zip(jobs, outcomes, strict=True)
        if isinstance(outcome, BaseException)
    ]
    if failed and errors == "raise":
        raise _first_of(failed, len(jobs))
    return SweepReport(records, list(axes), failed)


class _Kept:
    """The folder of a sweep, if it has one."""

    def __init__(self, store: str | os.PathLike[str] | None, experiment: Any, options: Mapping[str, Any]) -> None:
        self._runs = None if store is None else StoredRuns(os.fspath(store))
        self._experiment = experiment
        self._options = options

    def describe(self, axes: Mapping[str, Sequence[Any]], seeds: Sequence[int]) -> None:
        """Notes what the records are of. Runs tell what is wrong with an experiment."""
        if self._runs:
            name, text = _named(self._experiment)
            with contextlib.suppress(Error):
                self._runs.describe(name, text, axes=_axes(axes), seeds=list(seeds), **self._options)

    def records(self, point: Mapping[str, Any], seed: int) -> list[dict[str, Any]] | None:
        """The records of a point. `None` if it is to run, which also tells what is wrong with it."""
        if self._runs is None:
            return None
        name, text = _named(self._experiment)
        try:
            known = self._runs.known(name, text, axes=_axes(_at(point)), seeds=[seed], **self._options)
        except Error:
            return None
        return None if known is None else [_without_series(record) for record in known]

    def add(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Keeps the records of a point."""
        if self._runs:
            for record in records:
                self._runs.add(json.dumps(record))
        return records

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._runs:
            self._runs.close()


def run_point(experiment: Any, point: Mapping[str, Any], seed: int, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Runs an experiment at one point. The task of a worker."""
    lab = importlib.import_module("farhaul.lab")
    result = lab.run(experiment, axes=_at(point), seeds=[seed], jobs=1, **options)
    return [_without_series(record) for record in result.records]


def _at(point: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {axis: [value] for axis, value in point.items()}


def _without_series(record: Mapping[str, Any]) -> dict[str, Any]:
    """Series are memory of one process, and large."""
    return {name: value for name, value in record.items() if name != "series"}


def _jobs(axes: Mapping[str, Sequence[Any]], seeds: Sequence[int]) -> Iterator[tuple[dict[str, Any], int]]:
    for values in itertools.product(*axes.values()):
        for seed in seeds:
            yield dict(zip(axes, values, strict=True)), seed


def _place(point: Mapping[str, Any]) -> dict[str, Any]:
    return {axis: value["text"] if value["number"] is None else value["number"] for axis, value in point.items()}


def _first_of(failed: list[dict[str, Any]], all_runs: int) -> BaseException:
    first = failed[0]["error"]
    if isinstance(first, Error):
        first.add_note(f"{len(failed)} of {all_runs} runs failed; this one at {failed[0]['point']}, seed {failed[0]['seed']}")
        return first
    return _error("FAILED", f"{len(failed)} of {all_runs} runs failed; the first one: {first!r}", None, None)
