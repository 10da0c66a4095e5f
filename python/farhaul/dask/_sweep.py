"""Sweeps of the lab: each run of an experiment is a task."""

from __future__ import annotations

import importlib
import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .._errors import Error, _error
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
    - ``progress`` is called with the number of runs that have ended and of all.
    - ``errors``: whether to raise the first failure once all others have ended, or to report failures.
    """
    client = client or current_client()
    names = list(axes)
    jobs = list(_jobs(axes, seeds))
    name = f"lab {experiment if isinstance(experiment, str) and experiment.isalnum() else 'scenario'}-{uuid.uuid4().hex}"
    futures: list[Future] = [
        client.submit(
            run_point,
            experiment,
            point,
            seed,
            {"quick": quick, "world": world, "tcp": tcp, "controllers": controllers},
            key=f"{name}-{number}",
            resources=dict(resources) if resources else None,
            retries=retries,
            pure=False,
        )
        for number, (point, seed) in enumerate(jobs)
    ]
    records: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    try:
        for number, ((point, seed), future) in enumerate(zip(jobs, futures, strict=True)):
            if (error := future.exception()) is None:
                records += future.result()
            else:
                failed.append({"point": point, "seed": seed, "error": error})
            if progress:
                progress(number + 1, len(jobs))
    finally:
        for future in futures:
            future.cancel()
    if failed and errors == "raise":
        raise _first_of(failed, len(jobs))
    return SweepReport(records, names, failed)


def run_point(experiment: Any, point: Mapping[str, Any], seed: int, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Runs an experiment at one point. The task of a worker."""
    lab = importlib.import_module("farhaul.lab")
    axes = {axis: [value] for axis, value in point.items()}
    result = lab.run(experiment, axes=axes, seeds=[seed], jobs=1, **options)
    # Series are memory of this process, and large.
    return [{name: value for name, value in record.items() if name != "series"} for record in result.records]


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
