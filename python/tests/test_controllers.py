"""Controllers in Python, on sockets: what they get, what they set, how they fail, and that nobody waits for ever."""

import os
import subprocess
import sys
import threading
import time

import pytest

import farhaul
from farhaul import cc

MEGABYTE = 1 << 20


class Aimd(cc.Controller):
    """The worked example of the book."""

    def on_connect(self, path, control):
        control.cwnd = 64
        control.window_of_outstanding = True
        self.next_cut = 0

    def on_ack(self, path, ack, control):
        control.cwnd += min(ack.newly_acked, control.cwnd)

    def on_loss(self, path, loss, control):
        if loss.newly_lost and path.now >= self.next_cut:
            control.cwnd = max(2, control.cwnd / 2)
            self.next_cut = path.now + path.rtt


@pytest.fixture
def plain():
    """Makes pairs of plain streams on one listener, with a controller at the near end."""
    streams = []
    with farhaul.listen(plain=True) as listener:

        def pair(controller=None, **options):
            near = farhaul.connect(listener.address, plain=True, controller=controller, **options)
            far = listener.accept(timeout=20)
            streams.extend([near, far])
            return near, far

        yield pair
        for stream in streams:
            stream.abort()


def moved(near, far, size=4 * MEGABYTE):
    """Sends so many bytes, and returns whether they arrived."""
    data = os.urandom(size)
    sender = threading.Thread(target=lambda: (near.write(data), near.finish()))
    sender.start()
    received = far.read()
    sender.join()
    return received == data


def test_a_class_governs_the_stream_and_sees_what_happens(plain):
    seen = []

    class Watching(Aimd):
        def on_connect(self, path, control):
            super().on_connect(path, control)
            seen.append(("connect", control.cwnd, path.mss))

        def on_ack(self, path, ack, control):
            super().on_ack(path, ack, control)
            seen.append(("ack", ack.newly_acked, path.rtt, path.min_rtt, path.in_flight, path.now))

        def on_close(self):
            seen.append(("close",))

    near, far = plain(Watching)
    assert moved(near, far)
    near, far = None, None
    (first, window, mss), *acks = [event for event in seen if event[0] != "close"]
    assert (first, window) == ("connect", 64) and mss >= 576
    assert sum(event[1] for event in acks) * mss >= 4 * MEGABYTE
    assert all(0 <= event[2] < 60 for event in acks)
    assert [event[5] for event in acks] == sorted(event[5] for event in acks)


def test_each_connection_has_a_controller_of_its_own(plain):
    made = []

    def make():
        made.append(Aimd())
        return made[-1]

    first, second = plain(make), plain(make)
    assert moved(*first) and moved(*second)
    assert len({id(one) for one in made}) == len(made) >= 2


def test_only_methods_of_the_class_are_called(plain):
    class Window(cc.Controller):
        def on_connect(self, path, control):
            control.cwnd = 256

        def __getattribute__(self, name):
            # Looked up once, when it is made.
            return super().__getattribute__(name)

    assert moved(*plain(Window))


def test_copies_and_servers_take_a_class(root, tmp_path):
    source = tmp_path / "data"
    source.write_bytes(os.urandom(MEGABYTE))
    with farhaul.serve(root, plain=True, controller=Aimd) as server:
        report = farhaul.copy(source, server.url, plain=True, controller=Aimd)
        assert report.controller == "Aimd"
        farhaul.copy(server.url + "data", tmp_path / "back", plain=True)
    assert (tmp_path / "back").read_bytes() == source.read_bytes()


def test_a_registered_name_is_known_wherever_names_are_and_may_be_defined_again(root, tmp_path, plain):
    from farhaul import lab, sim

    used = []

    def law(mark):
        class Named(Aimd):
            def on_connect(self, path, control):
                super().on_connect(path, control)
                used.append(mark)

        return Named

    cc.register("test-named", law("first"))
    source = tmp_path / "data"
    source.write_bytes(os.urandom(MEGABYTE))
    near, far = plain("test-named")
    assert moved(near, far, MEGABYTE)
    with farhaul.serve(root, plain=True, controller="test-named") as server:
        assert farhaul.copy(source, server.url, plain=True, controller="test-named").controller == "test-named"
        before = len(used)
        assert before >= 3 and set(used) == {"first"}
        cc.register("test-named", law("second"))
        farhaul.copy(source, server.url + "again", plain=True, controller="test-named")
        assert sorted(used[before:]) == ["first", "second"]
    used.clear()
    near.set_controller("test-named")
    sim.dumbbell(["test-named"], rate="10mbit", rtt="10ms", seconds=0.2)
    scenario = {
        "title": "x",
        "duration": "200ms",
        "link": {"rate": "10mbit", "rtt": "10ms"},
        "flow": [{"controller": "test-named"}],
    }
    lab.run(scenario)
    assert len(used) >= 3 and set(used) == {"second"}
    cc.register("test-named", law("third"))
    lab.run(scenario, controllers={"test-named": law("of this run")})
    assert "third" not in used and "of this run" in used


def test_a_registered_controller_that_raises_is_named_with_its_cause():
    from farhaul import sim

    class AClassWithANameThatIsLongerThanReportsOfFailuresHave(Aimd):
        def on_ack(self, path, ack, control):
            raise ZeroDivisionError("on purpose")

    cc.register("test-raises", AClassWithANameThatIsLongerThanReportsOfFailuresHave)
    with pytest.raises(farhaul.ControllerError, match="FailuresHave raised ZeroDivisionError in on_ack") as caught:
        sim.dumbbell(["test-raises", "union"], rate="10mbit", rtt="10ms", seconds=1e4)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("name", ["cubic", "Named", "a:b", ""])
def test_names_of_shipped_controllers_and_unusable_ones_are_refused(name):
    with pytest.raises(farhaul.UsageError, match="choose another name|needs 1 to 32"):
        cc.register(name, Aimd)
    with pytest.raises(TypeError, match="callable"):
        cc.register("test-text", "cubic")


def test_what_is_no_controller_is_refused_before_anything_connects():
    with pytest.raises(TypeError, match="class below farhaul.cc.Controller"):
        farhaul.connect("127.0.0.1:9", plain=True, controller=3)
    with pytest.raises(farhaul.UsageError, match="choose one of"):
        farhaul.connect("127.0.0.1:9", plain=True, controller="warp")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("cwnd", float("nan")),
        ("cwnd", 0),
        ("cwnd", -1),
        ("send_period", float("inf")),
        ("packet_rate", 0),
        ("rto", 1e9),
        ("burst", 0),
        ("full_ack_interval", 0),
    ],
)
def test_nonsense_is_refused_where_it_is_set_and_nothing_changes(setting, value):
    from farhaul import sim

    found = []

    class Nonsense(Aimd):
        def on_ack(self, path, ack, control):
            before = getattr(control, setting)
            try:
                setattr(control, setting, value)
            except ValueError as error:
                found.append((str(error), getattr(control, setting) == before))

    sim.dumbbell([Nonsense], rate="10mbit", rtt="10ms", seconds=0.2)
    assert found and all(setting in words and same for words, same in found)


def test_an_exception_ends_its_connection_alone_and_is_the_cause(plain):
    class Broken(Aimd):
        def on_ack(self, path, ack, control):
            raise ZeroDivisionError("on purpose")

    healthy = plain(Aimd)
    near, _ = plain(Broken)
    with pytest.raises(farhaul.ControllerError, match="Broken raised ZeroDivisionError in on_ack: on purpose") as caught:
        for _ in range(1000):
            near.write(bytes(MEGABYTE))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert caught.value.__cause__.__traceback__.tb_frame.f_code.co_name == "on_ack"
    assert caught.value.code == "CONTROLLER_FAILED"
    assert moved(*healthy)


def test_a_constructor_that_raises_ends_the_connection(plain):
    class Unmade(Aimd):
        def __init__(self):
            raise KeyError("nothing")

    with pytest.raises(farhaul.ControllerError, match="Unmade raised KeyError in its constructor"):
        near, _ = plain(Unmade)
        for _ in range(1000):
            near.write(bytes(MEGABYTE))


def test_a_live_stream_changes_to_a_class_and_back_to_a_name(plain):
    events, acknowledged = [], threading.Event()

    class Later(Aimd):
        def on_take_over(self, path, control):
            self.next_cut = 0
            events.append(control.cwnd)

        def on_ack(self, path, ack, control):
            super().on_ack(path, ack, control)
            events.append("ack")
            acknowledged.set()

    near, far = plain()
    size = 8 * MEGABYTE
    reader = threading.Thread(target=lambda: [far.read(MEGABYTE) for _ in iter(lambda: far.stats().bytes_read < 2 * size, False)])
    reader.start()
    near.write(bytes(size))
    near.set_controller(Later)
    near.write(bytes(size))
    assert acknowledged.wait(20)
    near.set_controller("reno")
    reader.join()
    assert isinstance(events[0], float) and "ack" in events
    with pytest.raises(farhaul.UsageError, match="choose one of"):
        near.set_controller("warp")


def test_a_copy_says_which_exception_ended_it(root, tmp_path):
    class Broken(Aimd):
        def on_connect(self, path, control):
            raise LookupError("no window")

    source = tmp_path / "data"
    source.write_bytes(bytes(MEGABYTE))
    with farhaul.serve(root, plain=True) as server:
        with pytest.raises(farhaul.ControllerError, match="Broken raised LookupError in on_connect: no window") as caught:
            farhaul.copy(source, server.url, plain=True, controller=Broken)
        assert isinstance(caught.value.__cause__, LookupError)
        assert farhaul.copy(source, server.url, plain=True).files == 1


def test_a_callback_cannot_call_a_stream(plain):
    found, streams = [], []

    class Calling(Aimd):
        def on_ack(self, path, ack, control):
            super().on_ack(path, ack, control)
            for call in (lambda: streams[0].write(b"x"), lambda: streams[0].stats(), lambda: streams[0].read(1)):
                try:
                    call()
                except farhaul.UsageError as error:
                    found.append(error.code)

    near, far = plain(Calling)
    streams.append(near)
    assert moved(near, far, MEGABYTE)
    assert found and set(found) == {"IN_CALLBACK"}


def test_an_object_that_goes_in_a_callback_does_not_wait_for_its_port(plain):
    kept = []

    class Dropping(Aimd):
        def on_ack(self, path, ack, control):
            super().on_ack(path, ack, control)
            kept.clear()

    near, far = plain(Dropping)
    kept.extend(farhaul.connect(far_address(plain), plain=True) for _ in range(2))
    assert moved(near, far, MEGABYTE)
    assert not kept


def far_address(pair):
    """The address of the listener of a fixture."""
    return pair.__closure__[pair.__code__.co_freevars.index("listener")].cell_contents.address


def test_threads_that_keep_the_interpreter_and_the_port_busy_never_wait_for_each_other(plain):
    """Each call and each drop would deadlock if it waited for the port with the interpreter in hand."""
    near, far = plain(Aimd)
    address, over = far_address(plain), threading.Event()

    def busy():
        while not over.is_set():
            near.stats()
            far.peer
            far.stats()
            sum(range(2_000))

    def churning():
        while not over.is_set():
            extra = farhaul.connect(address, plain=True, controller=Aimd)
            extra.write(b"x" * 10_000)
            del extra

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    threads = [threading.Thread(target=work, daemon=True) for work in (busy, busy, churning)]
    try:
        for thread in threads:
            thread.start()
        assert moved(near, far, 16 * MEGABYTE)
    finally:
        over.set()
        sys.setswitchinterval(interval)
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def test_controllers_exchange_messages(plain):
    heard = []

    class Asking(Aimd):
        def on_ack(self, path, ack, control):
            super().on_ack(path, ack, control)
            control.send_message(7, b"how is it?..")

        def on_custom_message(self, path, kind, body, control):
            heard.append((kind, body))

    class Answering(Aimd):
        def on_custom_message(self, path, kind, body, control):
            control.send_message(kind + 1, body[::-1])

    with farhaul.listen(plain=True, controller=Answering) as listener:
        near = farhaul.connect(listener.address, plain=True, controller=Asking)
        far = listener.accept(timeout=20)
        deadline = time.monotonic() + 20
        while not heard and time.monotonic() < deadline:
            near.write(bytes(100_000))
            far.read(100_000)
        near.abort()
        far.abort()
    assert set(heard) == {(8, b"..?ti si woh")}


class Counting(Aimd):
    """Keeps what it hears of packets, in one list for both ends."""

    heard = []

    def on_sent(self, path, packets, control):
        self.heard.append(
            ("sent", path.now, len(packets), packets.bytes, packets.retransmitted, [packet.seq for packet in packets])
        )

    def on_received(self, path, packets, control):
        last = packets[-1]
        self.heard.append(
            ("received", path.now, len(packets), packets.bytes, packets.retransmitted, [packet.seq for packet in packets])
        )
        assert (last.seq, last.retransmission) == (packets[len(packets) - 1].seq, None) and 0 <= path.now - last.at < 1
        with pytest.raises(IndexError, match="none of"):
            packets[len(packets)]


def test_both_ends_hear_of_each_packet_at_the_pace_of_acknowledgements():
    heard = []

    class Both(Counting):
        pass

    Both.heard = heard
    with farhaul.listen(plain=True, controller=Both) as listener:
        near = farhaul.connect(listener.address, plain=True, controller=Both)
        far = listener.accept(timeout=20)
        assert moved(near, far)
        near.abort()
        far.abort()
    sent, received = ([event for event in heard if event[0] == kind] for kind in ("sent", "received"))
    payload = sum(event[3] for event in sent)
    again = sum(event[4] for event in sent)
    assert payload >= 4 * MEGABYTE and (again > 0 or payload == 4 * MEGABYTE)
    assert all(event[4] is None for event in received)
    numbers = {seq for event in sent for seq in event[5]}
    assert numbers == {seq for event in received for seq in event[5]} and len(numbers) == sum(event[2] for event in sent) - again
    assert len(sent) < len(numbers) / 10


def simulated(make, *, loss=0, seconds=2, rtt="40ms", **flow):
    """Runs a flow over 10 Mbit/s under these controllers, one at each end."""
    from farhaul import sim

    network = sim.Network().link("a", "b", rate="10mbit", rtt=rtt, queue="bdp", loss=loss)
    return network.flow("a", "b", name="flow", controller=make, **flow).run(seconds)


def acknowledgements(**settings):
    """How many acknowledgements a second a sender hears, whose peer has these settings."""
    heard = []

    class Settings(cc.Controller):
        def on_connect(self, path, control):
            control.cwnd, control.packet_rate = None, 500
            for name, value in settings.items():
                setattr(control, name, value)
                assert getattr(control, name) == pytest.approx(value)

        def on_ack(self, path, ack, control):
            heard.append(path.now)

    simulated(Settings)
    return sum(at >= 1 for at in heard)


def test_ccc_events_have_callbacks():
    heard = []

    def note(name):
        return lambda self, *arguments: heard.append(name)

    names = ["on_connect", "on_ack", "on_loss", "on_timeout", "on_sent", "on_received", "on_close"]
    every = type("Every", (cc.Controller,), {name: note(name) for name in names})

    class Impatient(every):
        def on_connect(self, path, control):
            super().on_connect(path, control)
            # Less than an RTT, so that it passes before the first acknowledgement.
            control.rto = 0.02

    simulated(Impatient, loss=0.02, seconds=10, rtt="100ms", bytes="300kB")
    assert set(heard) == set(names), set(names) - set(heard)
    assert heard.count("on_connect") == heard.count("on_close") == 2


def test_ccc_acknowledgements_by_time_and_by_count():
    assert acknowledgements() == pytest.approx(100, rel=0.2)
    assert acknowledgements(ack_period=0.004) == pytest.approx(250, rel=0.2)
    assert acknowledgements(full_ack_interval=2) == pytest.approx(250, rel=0.25)


def test_ccc_expiration_time():
    def timeouts(rto):
        heard = []

        class Waiting(cc.Controller):
            def on_connect(self, path, control):
                control.rto = rto

            def on_timeout(self, path, timeout, control):
                heard.append(timeout.count)

        simulated(Waiting, rtt="200ms")
        return heard

    assert timeouts(None) == [] and timeouts(0.05)


def test_ccc_period_and_window():
    flights = []

    class Fixed(cc.Controller):
        def __init__(self, cwnd, send_period):
            self.cwnd, self.send_period = cwnd, send_period

        def on_connect(self, path, control):
            control.cwnd, control.send_period = self.cwnd, self.send_period
            assert control.packet_rate == (self.send_period and pytest.approx(1 / self.send_period))

        def on_ack(self, path, ack, control):
            flights.append(path.in_flight)

    window = simulated(lambda: Fixed(5, None)).metrics["goodput.flow"]
    assert flights and max(flights) <= 5 and window == pytest.approx(5 * 1456 * 8 / 0.04, rel=0.3)
    assert simulated(lambda: Fixed(None, 0.01)).metrics["goodput.flow"] == pytest.approx(100 * 1456 * 8, rel=0.1)


def test_ccc_messages_go_both_ways():
    heard = []

    class Greeting(cc.Controller):
        def on_connect(self, path, control):
            control.send_message(42, b"to the peer")

        def on_custom_message(self, path, kind, body, control):
            heard.append((kind, body))

    simulated(Greeting)
    assert heard == [(42, b"to the peer")] * 2


def test_ccc_figures_of_the_path():
    seen, lost = [], []

    class Looking(cc.Controller):
        def on_connect(self, path, control):
            control.cwnd = 40

        def on_ack(self, path, ack, control):
            names = ["now", "rtt", "min_rtt", "mss", "capacity", "arrival_rate", "delivery_rate", "in_flight", "flow_window"]
            seen.append({name: getattr(path, name) for name in [*names, "max_window", "next_seq", "packets_sent"]})

        def on_loss(self, path, loss, control):
            lost.append(loss.newly_lost)

    simulated(Looking, loss=0.01)
    first, last = seen[0], seen[-1]
    assert last["mss"] == 1500 and 0.04 <= last["min_rtt"] <= last["rtt"] < 0.2 and sum(lost) > 0
    assert all(last[name] > 0 for name in last) and last["in_flight"] <= 40 and last["flow_window"] <= last["max_window"]
    assert last["capacity"] == pytest.approx(10e6 / 8 / 1500, rel=0.2)
    assert cc.is_after(last["next_seq"], first["next_seq"]) and first["packets_sent"] < last["packets_sent"]
    assert last["arrival_rate"] < 1.2 * last["capacity"]


def test_a_class_governs_simulated_tcp_and_its_exception_ends_the_experiment():
    heard = []

    class Window(cc.Controller):
        def on_connect(self, path, control):
            control.cwnd = 5

        def on_ack(self, path, ack, control):
            heard.append(path.in_flight)

        def on_close(self):
            heard.append("closed")

    class Broken(Window):
        def on_ack(self, path, ack, control):
            raise ZeroDivisionError("on purpose")

    result = simulated(Window, protocol="tcp", bytes="100kB")
    assert result.metrics["goodput.flow"] > 0 and heard[-1] == "closed" and max(heard[:-1]) <= 5
    for options in ({}, {"bytes": "100kB", "transfers": 3}):
        with pytest.raises(farhaul.ControllerError, match="Broken raised ZeroDivisionError in on_ack: on purpose") as caught:
            simulated(Broken, protocol="tcp", seconds=1000, **options)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_class_cannot_reach_a_sender_on_another_host(tmp_path):
    """Nothing is started: this host exists nowhere."""
    from farhaul._farhaul import RemoteFiles

    cc.register("test-here", Aimd)
    here, there = tmp_path / "here", "far.invalid:data"
    for make, name in ((Aimd, "Aimd"), ("test-here", "test-here")):
        for call in (
            lambda make=make: farhaul.copy(there, here, controller=make),
            lambda make=make: farhaul.copy(there, "other.invalid:", controller=make),
            lambda make=make: RemoteFiles("far.invalid:", controller=make),
        ):
            with pytest.raises(farhaul.UsageError, match=f"'{name}' is code of this program.* name a shipped one by controller="):
                call()
    assert not here.exists()
    with pytest.raises(farhaul.Error) as caught:
        farhaul.copy(there, here, controller="cubic", ssh=["false"])
    assert caught.value.code == "SSH_FAILED"


def test_an_exception_about_a_packet_names_its_callback(plain):
    class Broken(Aimd):
        def on_sent(self, path, packets, control):
            raise ArithmeticError(packets[0].payload)

    near, _ = plain(Broken)
    with pytest.raises(farhaul.ControllerError, match="Broken raised ArithmeticError in on_sent"):
        for _ in range(1000):
            near.write(bytes(MEGABYTE))


def test_sequence_numbers_compare_across_their_wrap():
    assert cc.is_after(1, (1 << 31) - 1) and not cc.is_after((1 << 31) - 1, 1)
    assert cc.is_after(8, 7) and not cc.is_after(7, 7)


def test_a_child_that_is_forked_while_callbacks_begin_does_not_hang():
    # Without the handlers of `farhaul` one child in a few hundred hangs in its first steps.
    program = """
import os, threading, time
import farhaul
from farhaul import cc

class Quick(cc.Controller):
    light_acks = True
    def on_connect(self, path, control):
        control.cwnd = 64
    def on_ack(self, path, ack, control):
        pass

def repeat(call, argument):
    while True:
        call(argument)

listener = farhaul.listen(plain=True)
kept = []
for _ in range(4):
    near = farhaul.connect(listener.address, plain=True, controller=Quick)
    far = listener.accept(timeout=20)
    kept.append((near, far))
    threading.Thread(target=repeat, args=(far.read, 1 << 20), daemon=True).start()
    threading.Thread(target=repeat, args=(near.write, bytes(1 << 20)), daemon=True).start()
time.sleep(0.2)
end = time.monotonic() + 20
for _ in range(1000):
    if time.monotonic() > end:
        break
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
print("ends", flush=True)
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "ends\n"), done.stderr


def test_the_interpreter_and_its_children_end_while_callbacks_are_busy():
    program = """
import os, sys, threading
import farhaul
from farhaul import cc

class Busy(cc.Controller):
    light_acks = True
    def on_connect(self, path, control):
        control.cwnd = 64
    def on_ack(self, path, ack, control):
        sum(range(20_000))

listener = farhaul.listen(plain=True)
near = farhaul.connect(listener.address, plain=True, controller=Busy)
far = listener.accept(timeout=20)
threading.Thread(target=lambda: [far.read(1 << 20) for _ in iter(int, 1)], daemon=True).start()
threading.Thread(target=lambda: [near.write(bytes(1 << 20)) for _ in iter(int, 1)], daemon=True).start()
import time
time.sleep(0.2)
for _ in range(20):
    child = os.fork()
    if child == 0:
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
print("ends")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "ends\n"), done.stderr
