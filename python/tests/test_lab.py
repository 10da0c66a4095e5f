"""The lab: figures of papers, scenarios, scores, drawings."""

import html
import os
import subprocess
import threading

import pytest

import farhaul
from farhaul import cc, lab

SCENARIO = """
title = "Two windows"
duration = "2s"
series = true
link = { rate = "10mbit", rtt = "20ms", queue = "bdp" }

[[flow]]
name = "flow"
controller = "mine"

[[axis]]
name = "rtt"
set = "link.rtt"
values = ["10ms", "40ms"]

[[curve]]
name = "mine"

[[curve]]
name = "default"
label = "Farhaul"
set = { "flow.flow.controller" = "union" }

[[plot]]
kind = "lines"
x = "rtt"
y = "goodput.flow"
x_scale = "log"

[[plot]]
kind = "time"
y = "window.flow"

[[plot]]
kind = "bars"
x = "rtt"
y = "utilisation"

[[score]]
id = "fills"
says = "the default fills the link"
source = "ours"
curve = "default"
must = "utilisation >= 0.8"

[[score]]
id = "equal"
says = "a window of ten packets fills it as well"
source = "ours"
must = "utilisation >= 0.8"
"""


class Window(cc.Controller):
    """Ten packets a round trip, whatever happens."""

    def on_connect(self, path, control):
        control.cwnd = 10


@pytest.fixture(scope="module")
def result():
    return lab.run(SCENARIO, controllers={"mine": Window}, seeds=[3, 4])


def test_the_figures_of_the_papers_are_listed():
    listed = {figure["id"]: figure for figure in lab.figures()}
    assert {"a5", "b2", "c9", "d3", "d4", "e7"} <= set(listed)
    assert listed["d4"]["paper"] == "emulab" and listed["d4"]["curves"]["tcp"] == "TCP SACK"
    assert listed["d4"]["scores"][0]["id"] == "full"


def test_a_scenario_runs_at_all_points_with_a_class_by_name(result):
    assert [(record["curve"], record["point"]["rtt"]["text"], record["seed"]) for record in result.records] == [
        (curve, rtt, seed) for curve in ("mine", "default") for rtt in ("10ms", "40ms") for seed in (3, 4)
    ]
    near, far = result.records[0]["metrics"], result.records[2]["metrics"]
    # Ten packets a round trip, which takes up to 10 ms more, because the receiver acknowledges every 10 ms.
    assert far["utilisation"] == pytest.approx(0.24, abs=0.04) and near["utilisation"] > 2 * far["utilisation"]


def test_scores_are_judged(result):
    assert [(score["id"], score["met"]) for score in result.judged] == [("fills", True), ("equal", False)]
    assert not result.passed
    assert "rtt 40ms" in result.judged[1]["measured"]


def test_a_shipped_figure_runs_in_other_forms():
    figure = lab.run("d4", quick=True, axes={"link.rate": ["1mbit"], "duration": ["41s"]}, seeds=1)
    assert figure.id == "d4" and len(figure.judged) == 4
    assert set(figure.curves) == {record["curve"] for record in figure.records}


def test_results_are_tables(result):
    pandas = pytest.importorskip("pandas")
    points = result.points()
    assert len(points) == 8 and {"curve", "rtt", "seed", "utilisation", "goodput.flow"} <= set(points.columns)
    assert points["rtt"].tolist() == [0.01, 0.01, 0.04, 0.04] * 2
    assert result.scores()["met"].tolist() == [True, False]
    series = result.series(curve="mine", rtt="40ms")
    assert isinstance(series, pandas.DataFrame) and series["window.flow"].dropna().iloc[-1] == 10
    with pytest.raises(LookupError, match="no run"):
        result.series(curve="yours")


def test_drawings_have_the_numbers_of_the_runs(result):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    (axes,) = result.figure("plot")
    assert [line.get_label() for line in axes.lines] == ["mine", "Farhaul"]
    assert axes.get_xscale() == "log" and axes.get_ylabel() == "Goodput (Mbit/s)"
    goodputs = result.points().groupby(["curve", "rtt"])["goodput.flow"].mean() / 1e6
    assert axes.lines[0].get_ydata() == pytest.approx(goodputs["mine"].tolist())
    assert len(result.figure("plot-2")) == 2
    (bars,) = result.figure("plot-3")
    assert [bar.get_height() for bar in bars.patches][:2] == pytest.approx(
        [100 * value for value in result.points().groupby(["curve", "rtt"])["utilisation"].mean()["mine"]]
    )
    assert [label.get_text() for label in bars.get_xticklabels()] == ["10\N{NO-BREAK SPACE}ms", "40\N{NO-BREAK SPACE}ms"]
    pyplot.close("all")


def test_a_notebook_shows_the_drawings_of_the_lab(result):
    assert result._repr_svg_().startswith("<svg") and "Farhaul" in result.svg("plot")
    assert [drawing.name for drawing in result.drawings] == ["plot", "plot-2", "plot-3"]
    with pytest.raises(LookupError, match="plot-3"):
        result.svg("nothing")


def test_heat_maps_are_drawn():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    axis = [
        {"name": "rate", "set": "link.rate", "values": ["1mbit", "2mbit"]},
        {"name": "rtt", "set": "link.rtt", "values": ["1ms", "5ms"]},
    ]
    plot = [{"kind": "heat", "x": "rate", "by": ["rtt"], "y": "utilisation"}]
    heat = lab.run({"title": "x", "duration": "1s", "link": {}, "flow": [{}], "axis": axis, "plot": plot})
    (axes, *_) = heat.figure()
    assert axes.images[0].get_array().shape == (2, 2)
    pyplot.close("all")


def test_mistakes_have_file_and_line(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(SCENARIO.replace('rate = "10mbit"', 'rate = "fast"'))
    with pytest.raises(farhaul.UsageError, match=r"mine\.toml:5: .*fast"):
        lab.run(file, controllers={"mine": Window})
    with pytest.raises(farhaul.UsageError, match="no figure 'd44'"):
        lab.run("d44")
    with pytest.raises(farhaul.UsageError, match="unknown congestion controller 'mine'"):
        lab.run(SCENARIO)
    with pytest.raises(farhaul.UsageError, match="sim, emu"):
        lab.run(SCENARIO, world="moon")


def stored(folder):
    """The number of runs in a folder."""
    file = folder / "records.ndjson"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_a_store_keeps_runs_and_an_experiment_that_was_stopped_goes_on(tmp_path):
    def stop(done, total):
        if done >= 2:
            raise RuntimeError("enough")

    def run(seeds, **options):
        return lab.run(SCENARIO, controllers={"mine": Window}, seeds=seeds, store=tmp_path, **options)

    first = lab.run(SCENARIO, controllers={"mine": Window}, seeds=2)
    with pytest.raises(RuntimeError, match="enough"):
        run([1, 2], progress=stop, jobs=1)
    begun = stored(tmp_path)
    assert 2 <= begun <= 8
    again = run([1, 2])
    times = [record["real_seconds"] for record in again.records]
    assert stored(tmp_path) == 8 and len(again.records) == 8
    assert [run["metrics"] for run in again.records] == [run["metrics"] for run in first.records]
    assert again.records[0]["series"]["goodput.flow"][0].tolist() == first.records[0]["series"]["goodput.flow"][0].tolist()
    assert [record["real_seconds"] for record in run([1, 2]).records] == times
    assert len(run([1, 2, 3]).records) == 12 and stored(tmp_path) == 12


def test_a_store_knows_when_the_code_of_a_controller_has_changed(tmp_path):
    def runs(make):
        before = stored(tmp_path)
        scenario = {
            "title": "x",
            "duration": "100ms",
            "link": {"rate": "10mbit", "rtt": "10ms"},
            "flow": [{"controller": "mine"}],
        }
        lab.run(scenario, controllers={"mine": make}, store=tmp_path)
        return stored(tmp_path) - before

    def law(window, note="", helper=None):
        class Law(cc.Controller):
            def on_connect(self, path, control):
                control.cwnd = helper(window) if helper else window

        Law.__doc__ = note
        return Law

    assert [runs(law(10)), runs(law(10, "another text")), runs(law(11)), runs(law(10))] == [1, 0, 1, 0]
    assert [runs(lambda: law(10)()), runs(lambda: law(10)()), runs("reno"), runs("reno"), runs("cubic")] == [1, 0, 1, 0, 1]
    assert [runs(law(10, helper=lambda window: window)), runs(law(10, helper=lambda window: window + 1))] == [1, 1]
    cc.register("test-stored", law(10))
    assert [runs("test-stored"), runs("test-stored")] == [1, 0]
    cc.register("test-stored", law(12))
    assert runs("test-stored") == 1

    class Changing(Window):
        lock = threading.Lock()

    assert [runs(Changing), runs(Changing)] == [1, 1]
    Changing.lock, Changing.large = None, bytes(65 << 20)
    assert [runs(Changing), runs(Changing)] == [1, 1], "too large to be read each time"
    Changing.revision = "1"
    assert [runs(Changing), runs(Changing)] == [1, 0]


def test_the_command_makes_a_report_of_a_store(tmp_path):
    program = os.environ.get("FARHAUL_PROGRAM", "")
    if not os.access(program, os.X_OK):
        pytest.skip("no farhaul program: FARHAUL_PROGRAM names it, as cargo xtask python does once it is built")
    lab.run(SCENARIO, controllers={"mine": Window}, seeds=[2, 5], store=tmp_path)
    cc.register("test-report", Window)
    other = {
        "title": "Another one: loss",
        "duration": "200ms",
        "link": {"rate": "10mbit", "rtt": "10ms"},
        "flow": [{"name": "flow", "controller": "test-report"}],
    }
    lab.run(other, axes={"link.loss": [0, 0.01]}, store=tmp_path)
    subprocess.run([program, "lab", "report", tmp_path], check=True, capture_output=True)
    page = html.unescape((tmp_path / "report.html").read_text())
    for words in (
        "Two windows",
        "the default fills the link",
        f'farhaul.lab.run("{tmp_path}/two-windows/scenario.toml", seeds=[2,5], controllers={{"mine": Window}}, store="{tmp_path}")',
        "Another one: loss",
        f'axes={{"link.loss":["0","0.01"]}}, store="{tmp_path}")',
    ):
        assert words in page, words
    # The call that the page shows makes no run again.
    before = stored(tmp_path)
    lab.run(tmp_path / "two-windows/scenario.toml", seeds=[2, 5], controllers={"mine": Window}, store=tmp_path)
    assert stored(tmp_path) == before == 10


def test_one_run_at_a_time_uses_a_store(tmp_path):
    from farhaul._farhaul import StoredRuns

    held = StoredRuns(tmp_path)
    with pytest.raises(farhaul.Error, match="another run adds its results here"):
        lab.run("d4", quick=True, store=tmp_path)
    held.close()


def test_progress_counts_runs():
    seen = []
    lab.run(SCENARIO, controllers={"mine": Window}, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (4, 4)


def test_the_same_class_runs_between_real_sockets():
    scenario = {
        "title": "x",
        "duration": "1s",
        "link": {"rate": "10mbit", "rtt": "40ms"},
        "flow": [{"name": "flow", "controller": "mine"}],
    }
    try:
        (record,) = lab.run(scenario, controllers={"mine": Window}, world="emu").records
    except farhaul.Error as error:
        pytest.skip(f"no emulated networks here: {error}")
    assert record["world"] == "emulated" and record["metrics"]["goodput.flow"] > 0

    class Broken(Window):
        def on_ack(self, path, ack, control):
            raise LookupError("on purpose")

    class BrokenAtReceiver(Window):
        def on_received(self, path, packets, control):
            raise LookupError("on purpose")

    for broken, callback in ((Broken, "on_ack"), (BrokenAtReceiver, "on_received")):
        with pytest.raises(farhaul.ControllerError, match=f"{broken.__name__} raised LookupError in {callback}: on purpose"):
            lab.run({**scenario, "duration": "60s"}, controllers={"mine": broken}, world="emu")
