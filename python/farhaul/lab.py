"""The lab: experiments of published papers and of your own, with their results as tables and drawings.

| to | use |
| --- | --- |
| see which experiments there are | `figures` |
| run one, or a scenario of your own | `run` |
| compare control laws on random paths | `arena` |
| read results without other packages | `Result.records`, `Result.judged` |
| have tables of pandas, drawings of matplotlib | `Result.points`, `Result.scores`, `Result.series`, `Result.figure` |

Tables and drawings need pandas and matplotlib, which the extra ``lab`` brings: ``pip install './python[lab]'``.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ._drawing import draw
from ._errors import Error
from ._extras import extra
from ._farhaul import RunningExperiment, run_arena, shipped_figures
from ._scenario import as_toml

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

    from .cc import Controller

__all__ = ["Drawing", "MakesController", "Result", "arena", "figures", "run"]

MakesController = str | Callable[[], "Controller"]
"""A controller by name, a class below `farhaul.cc.Controller`, or another callable that makes one."""

_INTERVAL = 0.1
"""Seconds between two calls of a progress function."""
_END = 5.0
"""Longest wait for the end of an experiment that was stopped, in seconds. A run ends within some milliseconds."""


def figures() -> list[dict[str, Any]]:
    """The shipped experiments: ``id``, ``title``, ``paper``, ``source``, ``shows``, ``curves``, ``axes``, ``scores`` of each."""
    listed: list[dict[str, Any]] = shipped_figures()
    return listed


def run(
    experiment: str | os.PathLike[str] | Mapping[str, Any],
    *,
    quick: bool = False,
    seeds: int | Sequence[int] | None = None,
    axes: Mapping[str, Sequence[Any]] | None = None,
    controllers: Mapping[str, MakesController] | None = None,
    world: Literal["sim", "emu"] = "sim",
    tcp: str | None = None,
    jobs: int | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Result:
    """Runs an experiment and returns its result.

    ``experiment`` is the id of a shipped one, a file that ends in ``.toml``, the text of such a file, or the same as dictionaries.

    - ``quick``: its short form.
    - ``seeds``: a number of seeds from 1 on, or a list; by default those of the experiment.
    - ``axes``: values of an axis by its name, or of a key by its path: ``{"link.loss": [0, 1e-4]}``.
    - ``controllers``: what flows may name as their ``controller``, and the classes. A name of a shipped controller is replaced.
    - ``world``: ``"sim"`` in virtual time, on all cores; ``"emu"`` with real sockets in real time, which needs the rights of root.
    - ``tcp``: in that world, the kernel's congestion control of all TCP flows.
    - ``jobs``: most runs at a time. Callbacks in Python run one at a time anyway.
    - ``store``: a folder that keeps each run as it ends. A run that is there is not made again, so an experiment that was stopped goes on,
      and one with more seeds or values makes only the new runs. It may keep several experiments, for one process at a time. Runs are made
      again after a change of what they depend on: the scenario, the code of their controllers, the version of this package.
    - ``progress`` is called every 100 ms on the calling thread with the number of finished runs and of all. An exception that it
      raises stops the experiment and reaches the caller. So does Ctrl-C.

    Raises `farhaul.UsageError` with file and line for a mistake, `farhaul.ControllerError` if a controller raises, and
    `farhaul.Error` otherwise.
    """
    name, text = _named(experiment)
    running = RunningExperiment(
        name,
        text,
        quick=quick,
        seeds=list(range(1, seeds + 1)) if isinstance(seeds, int) else seeds and list(seeds),
        axes=_axes(axes),
        controllers=dict(controllers) if controllers else None,
        world=world,
        tcp=tcp,
        jobs=jobs,
        store=None if store is None else os.fspath(store),
    )
    return Result(_outcome(running, progress))


def arena(
    controllers: Sequence[str] = ("all",),
    *,
    seeds: int | Sequence[int] = 1,
    cells: int = 46,
    families: Sequence[str] = (),
    jobs: int | None = None,
    out: str | os.PathLike[str] | None = None,
) -> list[dict[str, Any]]:
    """Compares control laws on random paths, with goals by stated formulas.

    ``controllers`` are names, ``"all"`` for every law that needs no option, and ``"ideal"``. `farhaul.cc.register` gives a class of your
    own a name.

    - ``seeds``: a number of seeds from 1 on, or a list. A seed decides its paths.
    - ``cells``: paths of each seed.
    - ``families``: only paths of these families, such as ``"clean"`` or ``"loss"``.
    - ``jobs``: most runs at a time.
    - ``out``: a folder for ``arena.html`` and ``field.html``.

    Returns a record for each law: ``controller``, ``passed``, ``cells``, ``score``, and the scores by ``families``. Ctrl-C stops it.
    """
    numbers = list(range(1, seeds + 1)) if isinstance(seeds, int) else list(seeds)
    paths = (numbers, cells, list(families))
    return run_arena(list(controllers), paths, jobs, None if out is None else os.fspath(out))


def _named(experiment: str | os.PathLike[str] | Mapping[str, Any]) -> tuple[str, str | None]:
    """The name of an experiment, and its text if that was given."""
    if isinstance(experiment, Mapping):
        return "scenario", as_toml(experiment)
    name = os.fspath(experiment)
    return ("scenario", name) if "\n" in name else (name, None)


def _axes(axes: Mapping[str, Sequence[Any]] | None) -> dict[str, list[str]] | None:
    return {key: [str(value) for value in of] for key, of in axes.items()} if axes else None


def _outcome(running: RunningExperiment, progress: Callable[[int, int], object] | None) -> dict[str, Any]:
    try:
        while (outcome := running.wait(_INTERVAL if progress else None)) is None:
            if progress:
                progress(*running.progress())
    except BaseException:
        running.cancel()
        # Its folder is free again when it has ended.
        with contextlib.suppress(Error):
            running.wait(_END)
        raise
    if progress:
        progress(*running.progress())
    return outcome


class Drawing:
    """A drawing of the lab, as SVG. A notebook shows it."""

    def __init__(self, name: str, title: str, svg: str) -> None:
        self.name = name
        self.title = title
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<farhaul.lab.Drawing {self.name}: {self.title}>"


class Result:
    """The result of an experiment. Numbers are in base units: bit/s, seconds, packets, shares of one."""

    def __init__(self, outcome: dict[str, Any]) -> None:
        self._outcome = outcome
        self.id: str = outcome["id"]
        self.title: str = outcome["title"]
        self.shows: str = outcome["shows"]
        """The expected result in one line."""
        self.axes: list[str] = outcome["axes"]
        self.curves: dict[str, str] = outcome["curves"]
        """The labels of the curves by name."""
        self.world: str = outcome["world"]
        self.drawings = [Drawing(**drawing) for drawing in outcome["drawings"]]
        self.judged: list[dict[str, Any]] = outcome["scores"]
        """The scores: ``id``, ``says``, ``met`` (``None`` if the quick form has no points for it), ``measured``, …"""
        self.published: list[dict[str, Any]] = outcome["published"]
        """The numbers that the paper reports."""
        self.records: list[dict[str, Any]] = outcome["records"]
        """The runs: ``curve``, ``point``, ``seed``, ``metrics``, ``series``, …

        A series is two blocks of doubles, times and values, as `memoryview`. ``numpy.asarray`` takes them without a copy."""
        for record in self.records:
            record["series"] = {
                name: (memoryview(times).cast("d"), memoryview(values).cast("d"))
                for name, (times, values) in record["series"].items()
            }

    @property
    def passed(self) -> bool:
        """Whether every score is met that could be judged. The quick form of a figure may have no points for some."""
        return all(score["met"] is not False for score in self.judged)

    def points(self) -> pandas.DataFrame:
        """A row for each run: its curve, its place on each axis, its seed, and its metrics."""
        rows = [
            {
                "curve": record["curve"],
                **{axis: _axis_value(record["point"][axis]) for axis in self.axes},
                "seed": record["seed"],
                **record["metrics"],
            }
            for record in self.records
        ]
        return extra("pandas", "lab").DataFrame(rows)

    def scores(self) -> pandas.DataFrame:
        """A row for each score."""
        pandas = extra("pandas", "lab")
        return pandas.DataFrame(self.judged, columns=["id", "says", "met", "measured", "source", "holds", "places", "worst"])

    def series(self, *, curve: str | None = None, seed: int | None = None, **point: Any) -> pandas.DataFrame:
        """The series of the first run with these properties, by time in seconds. Axes are named as keyword arguments."""
        pandas = extra("pandas", "lab")
        record = self._record(curve, seed, point)
        columns = {
            name: pandas.Series(list(values), index=list(times), dtype=float)
            for name, (times, values) in record["series"].items()
        }
        table = pandas.DataFrame(columns)
        table.index.name = "time"
        return table

    def _record(self, curve: str | None, seed: int | None, point: Mapping[str, Any]) -> dict[str, Any]:
        def fits(record: dict[str, Any]) -> bool:
            place = record["point"]
            return (
                (curve is None or record["curve"] == curve)
                and (seed is None or record["seed"] == seed)
                and all(axis in place and value in (place[axis]["text"], place[axis]["number"]) for axis, value in point.items())
            )

        for record in filter(fits, self.records):
            if record["series"]:
                return record
        raise LookupError(f"no run with curve={curve}, seed={seed}, {dict(point)} has series: a grid needs series = true")

    def svg(self, name: str | None = None) -> str:
        """The lab's own drawing of this name, or the first one."""
        return self._drawing(name).svg

    def _drawing(self, name: str | None) -> Drawing:
        for drawing in self.drawings:
            if name in (None, drawing.name):
                return drawing
        raise LookupError(f"no drawing {name!r}: there are {', '.join(drawing.name for drawing in self.drawings)}")

    def figure(self, name: str | None = None, *, figure: Any = None) -> list[Any]:
        """The drawing of this name, or the first one, by matplotlib: a list of its axes.

        They have the numbers of the lab's own drawing, and published numbers as hollow marks. ``figure`` is a `matplotlib.figure.Figure`
        to draw in."""
        title = self._drawing(name).name
        content = next(plot for plot in self._outcome["plots"] if plot["name"] == title)
        return draw(content, figure)

    def _repr_svg_(self) -> str | None:
        return self.drawings[0].svg if self.drawings else None

    def __repr__(self) -> str:
        judged = [score["met"] for score in self.judged if score["met"] is not None]
        scores = f", {sum(judged)} of {len(judged)} scores met" if judged else ""
        return f"<farhaul.lab.Result {self.id}: {len(self.records)} runs{scores}>"


def _axis_value(value: dict[str, Any]) -> Any:
    return value["text"] if value["number"] is None else value["number"]
