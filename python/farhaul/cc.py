"""Congestion controllers in Python: one class for sockets, for the simulator and for the lab.

A controller decides how fast a connection sends. It is called at the pace of acknowledgements, about a hundred times a second::

    from farhaul import cc

    class Aimd(cc.Controller):
        def on_connect(self, path, control):
            control.cwnd = 16

        def on_ack(self, path, ack, control):
            control.cwnd += ack.newly_acked / control.cwnd

        def on_loss(self, path, loss, control):
            if loss.newly_lost:
                control.cwnd = max(2, control.cwnd / 2)

Wherever a name of a controller is taken, the class is as well: ``farhaul.copy(…, controller=Aimd)``, flows of `farhaul.sim`, and
``controllers={"aimd": Aimd}`` of `farhaul.lab`. `register` gives the class a name of its own::

    cc.register("aimd", Aimd)
    farhaul.copy(…, controller="aimd")
"""

from __future__ import annotations

from collections.abc import Callable

from ._farhaul import Ack, Control, Delivery, Loss, Packet, Packets, Timeout, _register
from ._farhaul import NetworkPath as Path

__all__ = ["Ack", "Control", "Controller", "Delivery", "Loss", "Packet", "Packets", "Path", "Timeout", "is_after", "register"]


class Controller:
    """A congestion controller. Each connection has one of its own, made by calling the class.

    Only methods that a subclass has are called; which ones is decided when the controller is made. ``path``, ``control`` and the
    events are the same objects in every call, with the values of that call: keep numbers, not the objects. Times are in seconds,
    windows in packets, rates in packets per second.

    An exception ends the connection of this controller, and no other. The connection's error has it as its ``__cause__``, with its
    traceback.

    A callback holds the connection's port. So it returns soon, and must not call a stream: that raises `farhaul.UsageError`.
    """

    light_acks: bool = False
    """Whether `on_ack` is called for light acknowledgements as well: one for 64 packets, in place of one in 10 ms. Otherwise the next
    full one has their packets."""

    revision: str | None = None
    """A text that changes whenever this class, or what it uses, does. By default the lab finds out whether its code has changed when
    results are stored."""

    def on_connect(self, path: Path, control: Control) -> None:
        """The connection is established. ``control`` has the initial settings: a window of 16 packets, unpaced."""

    def on_take_over(self, path: Path, control: Control) -> None:
        """The controller replaces another one in mid-transfer. ``control`` has the window of the one before. Without this method,
        `on_connect` is called in its place."""

    def on_ack(self, path: Path, ack: Ack, control: Control) -> None:
        """The peer acknowledged data in order."""

    def on_delivery(self, path: Path, delivery: Delivery, control: Control) -> None:
        """Packets are known to have arrived, in order or not. With this method the peer reports them."""

    def on_restart(self, path: Path, control: Control) -> None:
        """Packets are about to leave, and none is in flight because the application had none."""

    def on_loss(self, path: Path, loss: Loss, control: Control) -> None:
        """The peer reported losses."""

    def on_recovered(self, path: Path, spurious: bool, control: Control) -> None:
        """All packets reported lost have arrived. ``spurious``: they had only been overtaken by others."""

    def on_timeout(self, path: Path, timeout: Timeout, control: Control) -> None:
        """Nothing came from the peer for the expiration time, while data was unacknowledged."""

    def on_sent(self, path: Path, packets: Packets, control: Control) -> None:
        """Data packets left, retransmissions included.

        Packets wait for the next call of another method, and for 10 ms at most while others leave. So this is called at the pace of
        acknowledgements, and not for each burst. Packets that wait at the end are told before `on_close`. Only UDT connections and
        simulated TCP call it."""

    def on_received(self, path: Path, packets: Packets, control: Control) -> None:
        """Data packets arrived, duplicates included. They wait as those of `on_sent` do. The controller at the receiver is called,
        which governs nothing if it sends nothing."""

    def on_custom_message(self, path: Path, kind: int, body: bytes, control: Control) -> None:
        """A packet from the controller of the peer, which `Control.send_message` sent. It may be hostile."""

    def on_close(self) -> None:
        """The connection has ended. Not called after an exception."""


def register(name: str, controller: Callable[[], Controller]) -> None:
    """Gives a name to a class, or to another callable that makes controllers.

    From then on, everything in this process that takes the name of a controller takes this one: copies, servers, streams,
    simulations, scenarios of the lab, settings in files. To register a name again replaces its class; connections that are there, and
    servers that were started, keep the one that they have.

    A name has 1 to 32 of ``a-z``, ``0-9``, ``-`` and ``_``, and begins with a letter. Raises `farhaul.UsageError` for any other,
    and for the name of a shipped controller.
    """
    _register(name, controller)


def is_after(seq: int, other: int) -> bool:
    """Whether a sequence number is later than another one. Sequence numbers begin anywhere and wrap after 2³¹."""
    return 0 < (seq - other) % (1 << 31) < 1 << 30
