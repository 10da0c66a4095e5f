"""Simulations: networks in a few lines, their results, and controllers in Python in them."""

import subprocess
import sys
import threading

import pytest

import farhaul
from farhaul import cc, lab, sim


class Aimd(cc.Controller):
    def on_connect(self, path, control):
        control.cwnd = 16
        self.next_cut = 0

    def on_ack(self, path, ack, control):
        control.cwnd += min(ack.newly_acked, control.cwnd) / control.cwnd

    def on_loss(self, path, loss, control):
        if loss.newly_lost and path.now >= self.next_cut:
            control.cwnd = max(2, control.cwnd / 2)
            self.next_cut = path.now + path.rtt


def network():
    described = sim.Network()
    described.link("a", "m", rate="100mbit", delay="1ms")
    described.link("m", "b", rate=10e6, rtt=0.02, queue=50, loss=1e-3)
    described.flow("a", "b", name="own", controller=Aimd)
    described.flow("a", "b", name="tcp", protocol="tcp", controller="cubic", start=0.5)
    return described.flow("b", "a", name="back", protocol="cbr", rate=1e6, stop=1)


def test_the_same_seed_gives_the_same_packets():
    first, second, other = (network().run(2, seed=seed) for seed in (7, 7, 8))
    assert first.trace == second.trace != other.trace
    assert first.metrics == second.metrics


def test_a_network_gives_metrics_series_and_events():
    result = network().run(2, sample=0.05)
    assert result.flows == ["own", "tcp", "back"]
    assert 1e6 < result.metrics["goodput.own"] < 10e6 and 0.02 <= result.metrics["rtt.own"] < 0.2
    times, values = result.arrays["goodput.tcp"]
    assert isinstance(times, memoryview) and (times.format, len(times)) == ("d", len(values))
    assert max(times) == pytest.approx(2) and times[1] - times[0] == pytest.approx(0.05)
    events = result.events()
    assert {event["event"] for event in events} == {"starts", "loss", "ends"}
    lost = sum(event["packets"] for event in events if event["event"] == "loss" and event["flow"] == "own")
    assert lost == result.arrays["losses.own"][1][-1]
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)


def test_a_law_in_python_is_the_same_law():
    """Reno of RFC 5681 in Python sends the packets that Reno in Rust sends."""

    class Reno(cc.Controller):
        light_acks = True

        def on_connect(self, path, control):
            control.window_of_outstanding = True
            self.threshold = float("inf")
            self.ends = None

        def on_delivery(self, path, delivery, control):
            """With this method the peer sends receipts, as Reno wants."""

        def on_ack(self, path, ack, control):
            if self.ends is not None and cc.is_after(ack.seq, self.ends):
                self.ends = None
            acked = min(ack.newly_acked, control.cwnd)
            grown = min(acked, max(0.0, self.threshold - control.cwnd))
            cwnd = control.cwnd + grown
            cwnd += (acked - grown) / cwnd
            control.cwnd = min(cwnd, max(float(path.max_window), 2.0))

        def on_loss(self, path, loss, control):
            if loss.newly_lost and self.ends is None:
                self.ends = loss.largest_sent
                self.threshold = max(2.0, min(path.in_flight, control.cwnd) / 2)
                control.cwnd = min(self.threshold, control.cwnd)

    def simulated(law):
        described = sim.Network().link("a", "b", rate="10mbit", rtt="20ms", queue=30)
        return described.flow("a", "b", name="flow", controller=law).run(3)

    python, rust = simulated(Reno), simulated("reno")
    assert python.metrics["goodput.flow"] == pytest.approx(rust.metrics["goodput.flow"], rel=0.01)
    assert python.metrics["retransmitted.flow"] == pytest.approx(rust.metrics["retransmitted.flow"], rel=0.2)


def test_controllers_hear_of_packets_in_virtual_time_as_on_sockets():
    calls = []

    class Counting(Aimd):
        def on_sent(self, path, packets, control):
            first, last = packets[0], packets[-1]
            calls.append((path.now, len(packets), packets.retransmitted, first.at, last.at))
            assert [packet.at for packet in packets] == sorted(packet.at for packet in packets)
            assert (packets.bytes, last.retransmission in (True, False)) == (sum(packet.payload for packet in packets), True)

    described = sim.Network().link("a", "b", rate="10mbit", rtt="20ms", queue=30).flow("a", "b", name="own", controller=Counting)
    first = described.run(2)
    seen = list(calls)
    assert first.trace == described.run(2).trace and calls == 2 * seen
    ends = [call[0] for call in seen]
    assert ends == sorted(ends) and len(ends) <= 2 * 2 / 0.01
    assert all(end <= begin < now + 1e-9 for end, (now, _, _, begin, _) in zip(ends, seen[1:], strict=False))
    sent, again = sum(call[1] for call in seen), sum(call[2] for call in seen)
    assert again / sent == pytest.approx(first.metrics["retransmitted.own"], abs=0.01)
    assert (sent - again) * 1456 * 8 / 2 == pytest.approx(first.metrics["goodput.own"], rel=0.05)


def test_a_network_is_a_scenario():
    described = sim.Network().link("a", "b", rate="10mbit", rtt="20ms").flow("a", "b", name="flow", controller="reno")
    alone = described.run(1)
    from_dict = lab.run(described.scenario(1))
    from_text = lab.run(described.to_toml(1))
    assert alone.trace == from_dict.records[0]["trace"] == from_text.records[0]["trace"]


def test_mistakes_are_told_before_anything_runs():
    with pytest.raises(farhaul.UsageError, match="choose one of"):
        sim.dumbbell(["warp"], rate="1mbit", rtt="1ms", seconds=1)
    with pytest.raises(farhaul.UsageError, match="qeue"):
        sim.Network().link("a", "b", rate="1mbit", qeue=3).flow("a", "b").run(1)
    with pytest.raises(ValueError, match="a delay, or an RTT"):
        sim.Network().link("a", "b", delay=1, rtt=2)
    with pytest.raises(ValueError, match="is no time"):
        sim.Network().link("a", "b", rtt="soon")
    with pytest.raises(TypeError, match="no value of a scenario"):
        sim.Network().link("a", "b", queue={1, 2}).flow("a", "b").run(1)


def test_two_classes_of_one_name_are_two_controllers():
    windows = {}

    def law(window):
        class Law(cc.Controller):
            def on_connect(self, path, control):
                control.cwnd = window
                windows[window] = True

        return Law

    result = sim.dumbbell([law(10), law(20)], rate="100mbit", rtt="20ms", seconds=1)
    assert windows == {10: True, 20: True}
    assert result.flows == ["Law", "Law-2"]
    assert result.metrics["goodput.Law-2"] == pytest.approx(2 * result.metrics["goodput.Law"], rel=0.1)


def test_an_exception_stops_the_simulation_and_is_the_cause():
    class Broken(Aimd):
        def on_loss(self, path, loss, control):
            raise OverflowError("too many")

    with pytest.raises(farhaul.ControllerError, match="Broken raised OverflowError in on_loss: too many") as caught:
        sim.dumbbell([Aimd, Broken], rate="10mbit", rtt="20ms", seconds=1e4)
    assert isinstance(caught.value.__cause__, OverflowError)


def test_other_threads_run_meanwhile():
    counted, over = [0], threading.Event()

    def count():
        while not over.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = counted[0]
    sim.dumbbell(["union"], rate="50mbit", rtt="20ms", seconds=2)
    during = counted[0] - before
    over.set()
    thread.join()
    assert during > 1000


def test_ctrl_c_stops_a_simulation(interrupt):
    interrupt(0.3)
    with pytest.raises(KeyboardInterrupt):
        sim.dumbbell([Aimd], rate="1gbit", rtt="20ms", seconds=50_000)


def test_progress_is_called_and_its_exception_stops_the_simulation():
    def stop(done, total):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        sim.dumbbell(["union"], rate="1gbit", rtt="20ms", seconds=50_000, progress=stop)


def test_tables_and_drawings_have_the_numbers():
    pandas, pyplot = pytest.importorskip("pandas"), pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    result = network().run(2)
    table = result.series()
    assert isinstance(table, pandas.DataFrame) and table.index.name == "time"
    assert table["window.own"].dropna().tolist() == list(result.arrays["window.own"][1])
    axes = result.plot(["goodput", "queue"])
    assert [line.get_label() for line in axes[0].lines] == ["own", "tcp", "back"]
    assert max(axes[1].lines[0].get_ydata()) == max(result.arrays["queue"][1])
    pyplot.close("all")


def test_without_the_extra_results_are_plain_and_the_error_names_it():
    program = """
import sys
sys.modules["pandas"] = sys.modules["matplotlib"] = sys.modules["matplotlib.pyplot"] = None
from farhaul import sim
result = sim.dumbbell(["union"], rate="10mbit", rtt="10ms", seconds=1)
assert result.metrics["goodput.union"] > 5e6 and len(result.arrays["queue"][0]) == 11 and result.svg().startswith("<svg")
for use in (result.series, result.points, result.scores, result.plot, result.figure):
    try:
        use()
    except ImportError as error:
        assert "pip install pandas" in str(error) or "pip install matplotlib" in str(error), error
    else:
        raise AssertionError(use)
print("plain")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "plain\n", done.stderr
