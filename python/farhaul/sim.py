"""Simulations in virtual time: hosts, links and flows in a few lines.

::

    from farhaul import sim

    network = sim.Network()
    network.link("a", "b", rate="100mbit", rtt="50ms", queue="bdp", loss=1e-4)
    network.flow("a", "b", name="default")
    network.flow("a", "b", name="tcp", protocol="tcp", controller="cubic", start=2)
    result = network.run(10)
    print(result.metrics["goodput.default"] / 1e6, "Mbit/s")
    result.plot()

The transports are those that ship. The same network and seed give the same packets at the same nanoseconds. A controller is a name,
or a class below `farhaul.cc.Controller`. Times are numbers of seconds or words (``"20ms"``), rates numbers of bits per second or
words (``"100mbit"``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._extras import extra
from ._farhaul import RunningExperiment
from ._scenario import as_toml
from ._scenario import rate as in_bits
from ._scenario import seconds as in_seconds
from .lab import MakesController, Result, _outcome

__all__ = ["Network", "SimulationResult", "dumbbell"]

Time = float | str
Rate = float | str


class Network:
    """Hosts, links and flows. Hosts are what links and flows name."""

    def __init__(self, *, bottleneck: str | None = None) -> None:
        """``bottleneck`` is the link whose queue and utilisation are measured; by default the slowest one."""
        self._bottleneck = bottleneck
        self._links: list[dict[str, Any]] = []
        self._routes: list[dict[str, str]] = []
        self._flows: list[dict[str, Any]] = []
        self._controllers: dict[str, MakesController] = {}

    def link(
        self,
        a: str,
        b: str,
        *,
        rate: Rate | None = None,
        delay: Time | None = None,
        rtt: float | str | None = None,
        queue: int | str | dict[str, Any] | None = None,
        loss: float | str | dict[str, Any] | None = None,
        name: str | None = None,
        simplex: bool = False,
        **keys: Any,
    ) -> Network:
        """Adds a link between two hosts, and returns the network.

        ``delay`` is one way, ``rtt`` both. ``queue`` is a number of packets, a size, or ``"bdp"``, and ``loss`` a share or a model.
        Further keys are those of a link in a scenario: ``jitter``, ``reorder``, ``policer``, ``schedule``, …
        """
        if rtt is not None and delay is not None:
            raise ValueError("a link has a delay, or an RTT, and not both")
        if rtt is not None:
            delay = _half(rtt)
        name = name or f"{a}-{b}"
        described = {"name": name, "from": a, "to": b, "rate": in_bits(rate), "delay": in_seconds(delay)}
        self._links.append({**described, "queue": queue, "loss": loss or None, "simplex": simplex or None, **keys})
        return self

    def route(self, at: str, to: str, via: str) -> Network:
        """Sends packets for host ``to`` from host ``at`` over the link ``via``. By default they take the fewest links."""
        self._routes.append({"at": at, "to": to, "via": via})
        return self

    def flow(
        self,
        sender: str,
        receiver: str,
        *,
        name: str | None = None,
        protocol: str = "udt",
        controller: MakesController | None = None,
        start: Time = 0,
        stop: Time | None = None,
        bytes: int | str | None = None,
        **keys: Any,
    ) -> Network:
        """Adds a flow from one host to another, and returns the network.

        ``protocol`` is one of Farhaul's with its options, ``"tcp"``, or cross traffic: ``"cbr"``, ``"on-off"``, ``"poisson"`` with
        ``rate``. ``controller`` is a name or a class; of TCP, ``"sack"``, ``"cubic"``, … ``bytes`` is the size of a transfer, which
        is endless by default. Further keys are those of a flow in a scenario: ``count``, ``packet``, ``disk``, …
        """
        if controller is not None and not isinstance(controller, str):
            controller = self._own(controller)
        if "rate" in keys:
            keys["rate"] = in_bits(keys["rate"])
        number = len(self._flows) + 1
        described = {"name": name or f"flow-{number}", "from": sender, "to": receiver, "protocol": protocol}
        times = {"start": in_seconds(start), "stop": in_seconds(stop)}
        self._flows.append({**described, "controller": controller, **times, "bytes": bytes, **keys})
        return self

    def _own(self, controller: Callable[[], Any]) -> str:
        """The name of a class in the scenario."""
        label = getattr(controller, "__name__", type(controller).__name__)
        name, number = label, 1
        while self._controllers.get(name, controller) is not controller:
            number += 1
            name = f"{label}-{number}"
        self._controllers[name] = controller
        return name

    def scenario(self, duration: Time, *, warmup: Time = 0, sample: Time = 0.1) -> dict[str, Any]:
        """The same as a scenario, for `farhaul.lab.run` or, by `to_toml`, for ``farhaul lab run``."""
        return {
            "title": "A simulation",
            "duration": in_seconds(duration),
            "warmup": in_seconds(warmup),
            "sample": in_seconds(sample),
            "series": True,
            "bottleneck": self._bottleneck,
            "links": self._links,
            "route": self._routes or None,
            "flow": self._flows,
        }

    def to_toml(self, duration: Time, **options: Any) -> str:
        """The scenario as text. A controller in Python is only its name there."""
        return as_toml(self.scenario(duration, **options))

    def run(
        self,
        duration: Time,
        *,
        seed: int = 1,
        warmup: Time = 0,
        sample: Time = 0.1,
        progress: Callable[[int, int], object] | None = None,
    ) -> SimulationResult:
        """Runs it for so many seconds of its own time.

        Rates count after ``warmup``. ``sample`` is the interval of series. Ctrl-C stops it. Raises `farhaul.UsageError` for a
        network that cannot be, and `farhaul.ControllerError` if a controller raises.
        """
        return _simulate(self.scenario(duration, warmup=warmup, sample=sample), seed, self._controllers, progress)


def dumbbell(
    flows: Sequence[MakesController],
    *,
    rate: Rate,
    rtt: Time,
    seconds: Time,
    queue: int | str | dict[str, Any] = "bdp",
    loss: float | str | dict[str, Any] = 0,
    every: float = 0,
    warmup: Time = 0,
    sample: Time = 0.1,
    seed: int = 1,
    progress: Callable[[int, int], object] | None = None,
) -> SimulationResult:
    """Runs flows with these controllers through one bottleneck. One begins ``every`` so many seconds. ``"tcp"`` is TCP with CUBIC."""
    network = Network()
    network.link("left", "right", rate=rate, rtt=rtt, queue=queue, loss=loss)
    names: list[str] = []
    for number, controller in enumerate(flows):
        label = controller if isinstance(controller, str) else getattr(controller, "__name__", "own")
        base = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in label)
        name = base if base not in names else f"{base}-{names.count(base) + 1}"
        names.append(base)
        protocol, law = ("tcp", "cubic") if controller == "tcp" else ("udt", controller)
        network.flow("left", "right", name=name, protocol=protocol, controller=law, start=number * every)
    return network.run(seconds, seed=seed, warmup=warmup, sample=sample, progress=progress)


def _simulate(
    scenario: dict[str, Any],
    seed: int,
    controllers: dict[str, MakesController],
    progress: Callable[[int, int], object] | None,
) -> SimulationResult:
    running = RunningExperiment("simulation", as_toml(scenario), seeds=[seed], controllers=controllers or None, jobs=1)
    return SimulationResult(_outcome(running, progress), scenario)


class SimulationResult(Result):
    """The result of one simulation."""

    def __init__(self, outcome: dict[str, Any], scenario: dict[str, Any]) -> None:
        super().__init__(outcome)
        self.scenario = scenario
        (record,) = self.records
        self.metrics: dict[str, float] = record["metrics"]
        """``goodput.FLOW``, ``rtt.FLOW``, ``loss.FLOW``, ``utilisation``, ``jain``, ``queue.mean``, …"""
        self.arrays: dict[str, tuple[memoryview, memoryview]] = record["series"]
        """Times and values of ``goodput.FLOW``, ``rtt.FLOW``, ``window.FLOW``, ``period.FLOW``, ``losses.FLOW``, ``queue``."""
        self.trace: str = record["trace"]
        """A hash of all packets: equal for equal simulations."""

    @property
    def flows(self) -> list[str]:
        """The names of the flows."""
        names: list[str] = self._outcome["flows"]
        return names

    def events(self) -> list[dict[str, Any]]:
        """What happened: ``time``, ``flow``, ``event`` (``starts``, ``loss``, ``ends``), and the ``packets`` of a loss.

        Losses are those between two samples, at the time of the later one."""
        found: list[dict[str, Any]] = []
        for flow in self.flows:
            sent = [(at, rate) for at, rate in zip(*self.arrays[f"goodput.{flow}"], strict=True) if rate > 0]
            for event, at in (("starts", sent[0][0]), ("ends", sent[-1][0])) if sent else ():
                found.append({"time": at, "flow": flow, "event": event, "packets": None})
            before = 0.0
            for at, losses in zip(*self.arrays.get(f"losses.{flow}", ((), ())), strict=True):
                if losses > before:
                    found.append({"time": at, "flow": flow, "event": "loss", "packets": int(losses - before)})
                before = losses
        return sorted(found, key=lambda event: (event["time"], event["flow"]))

    def plot(self, quantities: Sequence[str] = ("goodput", "window", "rtt", "queue"), *, figure: Any = None) -> list[Any]:
        """Draws series over time, one panel for each quantity, by matplotlib. Returns their axes.

        ``figure`` is a `matplotlib.figure.Figure` to draw in."""
        if figure is None:
            pyplot = extra("matplotlib.pyplot", "lab")
            figure = pyplot.figure(figsize=(8, 1.9 * len(quantities)), layout="constrained")
        all_axes = figure.subplots(len(quantities), 1, squeeze=False, sharex="all")[:, 0]
        colours = {flow: f"C{number % 10}" for number, flow in enumerate(self.flows)}
        for axes, quantity in zip(all_axes, quantities, strict=True):
            label, factor = _PANELS[quantity]
            for flow in ("", *self.flows):
                times, values = self.arrays.get(f"{quantity}.{flow}" if flow else quantity, ((), ()))
                # An RTT or a period of zero is none.
                known = [(at, value) for at, value in zip(times, values, strict=True) if value or quantity not in _MEASURED]
                places, heights = [at for at, _ in known], [value * factor for _, value in known]
                if known:
                    axes.plot(places, heights, label=flow or None, color=colours.get(flow, "0.4"))
            axes.set_ylabel(label)
            axes.set_ylim(bottom=0)
            axes.grid(alpha=0.3)
        all_axes[0].legend(fontsize="small", loc="lower right")
        all_axes[-1].set_xlabel("Time (s)")
        return list(all_axes)


_PANELS = {
    "goodput": ("Goodput (Mbit/s)", 1e-6),
    "window": ("Window (packets)", 1.0),
    "period": ("Period (µs)", 1e6),
    "rtt": ("RTT (ms)", 1e3),
    "losses": ("Losses (packets)", 1.0),
    "queue": ("Queue (packets)", 1.0),
}

_MEASURED = ("rtt", "period")


def _half(rtt: float | str) -> str | float:
    """Half of a round trip."""
    if not isinstance(rtt, str):
        return rtt / 2
    digits = rtt.rstrip("abcdefghijklmnopqrstuvwxyzµ ")
    try:
        return f"{float(digits) / 2:.9g}{rtt[len(digits) :].strip()}"
    except ValueError:
        raise ValueError(f"'{rtt}' is no time: write 20ms or 0.02") from None
