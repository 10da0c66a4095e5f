"""Streams over loopback."""

import array
import errno
import io
import os
import threading

import pytest

import farhaul


def elsewhere(work):
    """Runs `work` on another thread, and returns a function that waits for its result."""
    result = []

    def run():
        try:
            result.append((True, work()))
        except BaseException as error:
            result.append((False, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def wait():
        thread.join(30)
        assert result, "it does not end"
        good, value = result[0]
        if not good:
            raise value
        return value

    return wait


def test_bytes_arrive_and_finish_is_the_proof(pair):
    near, far = pair
    received = elsewhere(far.readall)
    with near:
        assert near.write(b"over the hills ") == 15
        near.write(memoryview(bytearray(b"and far away")))
    assert received() == b"over the hills and far away"
    assert near.closed and near.stats().bytes_acked == 27


def test_buffers_are_read_and_written_in_place(pair):
    near, far = pair
    numbers = array.array("d", range(100_000))
    sent = elsewhere(lambda: near.write(numbers))
    room = array.array("d", bytes(800_000))
    view, at = memoryview(room).cast("B"), 0
    while at < len(view):
        at += far.readinto(view[at:])
    assert sent() == 800_000 and room == numbers
    with pytest.raises(BufferError, match="gaps"):
        near.write(memoryview(bytes(10))[::2])
    with pytest.raises(BufferError, match="read-only"):
        far.readinto(bytes(10))


def test_an_exception_in_a_with_block_aborts(pair):
    near, far = pair
    with pytest.raises(KeyError), near:
        near.write(b"half of it")
        raise KeyError
    with pytest.raises(ConnectionError) as raised:
        while far.read(100):
            pass
    assert raised.value.code == "PEER_LOST"


def test_a_dropped_stream_is_no_end():
    with farhaul.listen() as listener:
        dropped = farhaul.connect(listener.address)
        other = listener.accept(timeout=20)
        dropped.write(b"x")
        del dropped
        with pytest.raises(ConnectionResetError):
            while other.read(100):
                pass


def test_one_direction_ends_alone(pair):
    near, far = pair
    near.write(b"a question")
    near.finish_sending()
    assert far.read() == b"a question"
    far.write(b"an answer")
    answered = elsewhere(far.finish)
    assert near.readall() == b"an answer"
    near.finish()
    answered()


def test_streams_are_files_for_the_standard_library(pair):
    near, far = pair
    sent = elsewhere(lambda: (near.write(b"one\ntwo\n"), near.close()))
    assert io.BufferedReader(far).readlines() == [b"one\n", b"two\n"]
    for call in (far.tell, lambda: far.seek(0), far.truncate):
        with pytest.raises(io.UnsupportedOperation):
            call()
    sent()


def test_files_are_sent_and_received(pair, tmp_path):
    near, far = pair
    content = os.urandom(3_000_000)
    (tmp_path / "from").write_bytes(content)

    def send():
        with open(tmp_path / "from", "rb") as file:
            return near.sendfile(file), near.sendfile(file, offset=10, count=20), near.finish()

    sent = elsewhere(send)
    with open(tmp_path / "to", "wb") as file:
        file.write(b"head")
        assert far.recvfile(file, 3_000_000) == 3_000_000
        assert far.recvfile(file) == 20
    assert sent()[:2] == (3_000_000, 20)
    assert (tmp_path / "to").read_bytes() == b"head" + content + content[10:30]


def test_a_file_that_ends_early_is_an_error(pair, tmp_path):
    near, _ = pair
    (tmp_path / "short").write_bytes(b"short")
    with open(tmp_path / "short", "rb") as file, pytest.raises(farhaul.Error, match="95 bytes early"):
        near.sendfile(file, count=100)


def test_a_time_out_ends_a_call_and_not_the_stream(pair):
    near, far = pair
    far.timeout = 0.1
    with pytest.raises(TimeoutError) as raised:
        far.read(1)
    assert (raised.value.code, raised.value.errno) == ("TIMED_OUT", errno.ETIMEDOUT)
    near.write(b"late")
    far.timeout = None
    assert far.read(4) == b"late"


@pytest.mark.parametrize("call", ["read", "write", "accept", "finish", "connect"])
def test_an_interrupt_ends_every_wait(pair, interrupt, call):
    near, far = pair
    with farhaul.listen() as listener, farhaul.listen(plain=True) as deaf:
        block = bytes(8 << 20)

        def fill():
            while True:
                near.write(block)

        def finish():
            far.set_rate("1mbit")
            far.write(block)
            far.finish()

        waits = {
            "read": lambda: far.read(1),
            "write": fill,
            "accept": listener.accept,
            "finish": finish,
            "connect": lambda: farhaul.connect(deaf.address, connect_timeout=30),
        }
        interrupt(0.2)
        with pytest.raises(KeyboardInterrupt):
            waits[call]()


def test_a_read_goes_on_behind_an_interrupt(pair, interrupt):
    near, far = pair
    interrupt(0.1)
    with pytest.raises(KeyboardInterrupt):
        far.read(10)
    near.write(b"nothing is lost")
    assert far.read(20) == b"nothing is lost"


def test_other_threads_run_while_one_waits(pair):
    near, far = pair
    waiting = [elsewhere(lambda: far.read(1))]
    steps = sum(1 for _ in range(100_000))
    near.write(b"x")
    assert (steps, waiting[0]()) == (100_000, b"x")


def test_a_listener_takes_those_whose_keys_it_knows(tmp_path, monkeypatch):
    with farhaul.listen() as listener:
        ours = farhaul.connect(listener.address)
        public = listener.accept(timeout=20)
        assert ours.peer_key == listener.key and public.peer_key == listener.key
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "somebody"))
        # The server judges the client's key last, so the first read brings the refusal.
        with pytest.raises(farhaul.PermissionDeniedError):
            farhaul.connect(listener.address, host_key=listener.key).read(1)
    theirs = (tmp_path / "somebody/farhaul/key.pub").read_text()
    monkeypatch.undo()
    with farhaul.listen(clients=[theirs]) as listener:
        with pytest.raises(PermissionError):
            farhaul.connect(listener.address).read(1)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "somebody"))
        stream = farhaul.connect(listener.address, host_key=listener.key)
        assert stream.peer_key == listener.key
        stream.abort()


def test_plain_streams_work_and_have_no_keys():
    with farhaul.listen(plain=True) as listener, farhaul.connect(listener.address, plain=True) as near:
        far = listener.accept(timeout=20)
        near.write(b"open")
        assert far.read(4) == b"open" and near.peer_key is None and listener.key is None
        assert far.stats().bytes_read == 4 and near.peer == listener.address
        with pytest.raises(farhaul.Error) as raised:
            near.finish_sending()
        assert raised.value.code == "UNSUPPORTED"
        finished = elsewhere(far.readall)
    assert finished() == b""


def test_a_refused_port_is_an_error_with_its_name():
    with farhaul.listen() as listener, pytest.raises(OSError) as raised:
        farhaul.listen(listener.address)
    assert (raised.value.code, raised.value.errno) == ("ADDRESS_IN_USE", errno.EADDRINUSE)
    with pytest.raises(ValueError, match="no address"):
        farhaul.connect("nowhere:port")
    closed = farhaul.listen()
    closed.close()
    with pytest.raises(farhaul.Error, match="closed"):
        closed.accept()


def test_messages_keep_their_boundaries():
    with farhaul.MessageSocket.listen("127.0.0.1:0", plain=True) as listener:
        near = farhaul.MessageSocket.connect(listener.address, plain=True)
        far = listener.accept(timeout=20)
        with near:
            near.send(b"one")
            near.send(b"x" * 50_000, in_order=True)
            near.send(b"too long", ttl=30)
            assert far.recv(timeout=20) == b"one"
            assert far.recv(timeout=20) == b"x" * 50_000
            with pytest.raises(farhaul.Error, match="longer than 3 bytes"):
                far.recv(3, timeout=20)
            with pytest.raises(TimeoutError):
                far.recv(timeout=0.05)
            finished = elsewhere(far.recv)
        assert finished() is None
    with pytest.raises(ValueError, match="plain=True"):
        farhaul.MessageSocket.connect("127.0.0.1:1")
