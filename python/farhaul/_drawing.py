"""Drawings of the lab by matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ._extras import extra

_WIDTH = 8.0
_HEIGHT = 3.2
"""Inches of one panel."""


def draw(content: Mapping[str, Any], figure: Any = None) -> list[Any]:
    """Draws the panels of one drawing, and returns their axes."""
    panels = content["panels"]
    columns = 1 if len(panels) == 1 else 2
    rows = math.ceil(len(panels) / columns)
    if figure is None:
        pyplot = extra("matplotlib.pyplot", "lab")
        figure = pyplot.figure(figsize=(_WIDTH, _HEIGHT * rows), layout="constrained")
    share = "all" if content["kind"] != "heat" else "none"
    grid = figure.subplots(rows, columns, squeeze=False, sharex=share, sharey=share).flatten()
    for spare in grid[len(panels) :]:
        spare.remove()
    paint = {"bars": _bars, "heat": _heat}.get(content["kind"], _lines)
    for axes, panel in zip(grid, panels, strict=False):
        paint(axes, panel, content)
        if panel["title"]:
            axes.set_title(panel["title"], fontsize="medium")
    figure.suptitle(content["title"])
    return list(grid[: len(panels)])


def _lines(axes: Any, panel: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    x, y = content["x"], content["y"]
    drawn = []
    for line in panel["lines"]:
        places, values = _scaled(line["points"], x, y)
        (path,) = axes.plot(places, values, label=line["label"], marker="" if content["kind"] == "time" else ".")
        drawn.append((path, places))
        if line["band"]:
            at = [point[0] * x["factor"] for point in line["band"]]
            low, high = ([point[side] * y["factor"] for point in line["band"]] for side in (1, 2))
            axes.fill_between(at, low, high, color=path.get_color(), alpha=0.2, linewidth=0)
    for index, place, value in panel["published"]:
        path, places = drawn[index]
        style = {"color": path.get_color(), "marker": "o", "fillstyle": "none", "linestyle": "none"}
        if place is None:
            axes.axhline(value * y["factor"], color=path.get_color(), linestyle=":")
        else:
            axes.plot([place * x["factor"]], [value * y["factor"]], **style)
    _label(axes, x, y)
    if x["words"]:
        axes.set_xticks(range(len(x["words"])), x["words"])
    if len(panel["lines"]) > 1:
        axes.legend(fontsize="small")


def _bars(axes: Any, panel: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    x, y = content["x"], content["y"]
    width = 0.8 / max(1, len(panel["lines"]))
    for number, line in enumerate(panel["lines"]):
        places = [point[0] - 0.4 + width * (number + 0.5) for point in line["points"]]
        values = [point[1] * y["factor"] for point in line["points"]]
        errors = [(point[2] - point[1]) / 2 * y["factor"] for point in line["band"]]
        whiskers = errors if len(errors) == len(values) else None
        axes.bar(places, values, width, label=line["label"] or None, yerr=whiskers)
    axes.set_xticks(range(len(x["words"])), x["words"])
    _label(axes, {**x, "log": False, "range": None}, y)
    if len(panel["lines"]) > 1:
        axes.legend(fontsize="small")


def _heat(axes: Any, panel: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    columns, rows = content["x"]["words"], panel["lines"]
    y = content["y"]
    cells = [[math.nan] * len(columns) for _ in rows]
    for cell_row, line in zip(cells, rows, strict=True):
        for place, value in line["points"]:
            cell_row[int(place)] = value * y["factor"]
    low, high = ([end * y["factor"] for end in y["range"]]) if y["range"] else (None, None)
    image = axes.imshow(cells, origin="lower", aspect="auto", cmap="YlGnBu", vmin=low, vmax=high)
    for row, values in enumerate(cells):
        for column, value in enumerate(values):
            if not math.isnan(value):
                dark = image.norm(value) > 0.6
                axes.text(column, row, f"{value:.3g}", ha="center", va="center", color="white" if dark else "black")
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), [line["label"] for line in rows])
    axes.set_xlabel(content["x"]["label"])
    axes.figure.colorbar(image, ax=axes, label=y["label"])


def _scaled(points: Any, x: Mapping[str, Any], y: Mapping[str, Any]) -> tuple[list[float], list[float]]:
    return [point[0] * x["factor"] for point in points], [point[1] * y["factor"] for point in points]


def _label(axes: Any, x: Mapping[str, Any], y: Mapping[str, Any]) -> None:
    axes.set_xlabel(x["label"])
    axes.set_ylabel(y["label"])
    if x["log"] and not x["words"]:
        axes.set_xscale("log")
    if y["log"]:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    if x["range"]:
        axes.set_xlim([end * x["factor"] for end in x["range"]])
    if y["range"]:
        axes.set_ylim([end * y["factor"] for end in y["range"]])
    axes.grid(alpha=0.3)
