"""Closed objects hold nothing: no port, no descriptor, no thread."""

import asyncio
import gc
import os
import socket

import pytest

import farhaul
from farhaul import sim
from farhaul._farhaul import RemoteFiles, _wait_idle

FEW = 8
"""What caches and the interpreter may have opened meanwhile. Each object that leaks leaves one more."""
TIMES = 500
SLOW_TIMES = 60
"""For what takes several milliseconds: more than seven times `FEW`."""


def held():
    """Descriptors and threads of this process, once closed ports have told their peers."""
    gc.collect()
    _wait_idle()
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


@pytest.fixture
def kept():
    """Keeps closed objects, because to close is what frees. In the end, as much is held as in the beginning."""
    before, kept = held(), []
    yield kept
    # A thread that ends may be counted for a moment longer. A leak lasts until the test's time is over.
    while any(now > then + FEW for now, then in zip(held(), before, strict=True)):
        pass


@pytest.mark.parametrize("plain", [True, False])
def test_listeners(kept, plain):
    for _ in range(TIMES):
        with farhaul.listen(plain=plain) as listener:
            kept.append(listener)
        with farhaul.MessageSocket.listen("127.0.0.1:0", plain=True) as listener:
            kept.append(listener)


@pytest.mark.parametrize("plain", [True, False])
def test_servers(kept, root, plain):
    for _ in range(TIMES):
        with farhaul.serve(root, plain=plain) as server:
            kept.append(server)


def test_a_port_can_be_opened_again_at_once(kept, root):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        at = f"127.0.0.1:{free.getsockname()[1]}"
    for number in range(20):
        # As a cell of a notebook that runs again: the variables of the last run live on.
        with farhaul.serve(root, at) as server:
            farhaul.copy(__file__, f"{server.url}{number}")
        with farhaul.listen(at) as listener:
            stream = farhaul.connect(listener.address)
            accepted = listener.accept(timeout=20)
            accepted.abort()
            stream.abort()
        kept += [server, listener, stream, accepted]


@pytest.mark.parametrize("end", ["close", "abort", "with", "raise", "drop"])
def test_streams(kept, end):
    with farhaul.listen() as listener:
        for _ in range(SLOW_TIMES):
            stream = farhaul.connect(listener.address)
            accepted = listener.accept(timeout=20)
            stream.write(b"x")
            assert accepted.read(1) == b"x"
            if end in ("with", "raise"):
                with pytest.raises(KeyError), stream, accepted:
                    if end == "raise":
                        raise KeyError
                    accepted.abort()
                    stream.close()
                    raise KeyError
            elif end != "drop":
                getattr(stream, end)()
                getattr(accepted, end)()
            if end != "drop":
                kept += [stream, accepted]


def test_messages(kept):
    with farhaul.MessageSocket.listen("127.0.0.1:0", plain=True) as listener:
        for _ in range(SLOW_TIMES):
            with farhaul.MessageSocket.connect(listener.address, plain=True) as near:
                far = listener.accept(timeout=20)
                near.send(b"x")
                assert far.recv(timeout=20) == b"x"
            far.abort()
            assert near.stats().packets_sent and near.finish() is None
            kept += [near, far]


def test_what_a_finished_message_socket_has_not_received_stays():
    with farhaul.MessageSocket.listen("127.0.0.1:0", plain=True) as listener:
        near = farhaul.MessageSocket.connect(listener.address, plain=True)
        far = listener.accept(timeout=20)
        for message in (b"1" * 100_000, b"2", b"3" * 5000):
            near.send(message)
        near.finish()
        far.finish()
        assert [far.recv(), far.recv(), far.recv(), far.recv()] == [b"1" * 100_000, b"2", b"3" * 5000, None]
        with pytest.raises(farhaul.Error):
            far.send(b"x")


def test_copies(kept, server, root, tmp_path):
    (root / "x").write_bytes(b"of the server")

    def stop(progress):
        raise KeyError

    for number in range(SLOW_TIMES):
        farhaul.copy(f"{server.url}x", tmp_path / str(number))
        with pytest.raises(FileNotFoundError):
            farhaul.copy(f"{server.url}missing", tmp_path / "missing")
        with pytest.raises(KeyError):
            farhaul.copy(f"{server.url}x", tmp_path / "stopped", progress=stop)


def test_files_of_a_host(kept, server, root):
    (root / "x").write_bytes(b"of the server")
    again = RemoteFiles(f"udt://{server.address}")

    async def read(files):
        assert (await files.read(b"x", 0, 100))[0] == b"of the server"
        with pytest.raises(FileNotFoundError):
            await files.stat(b"missing")
        writer = await files.create(b"given-up", replace=True)
        writer.discard()

    for _ in range(SLOW_TIMES):
        files = RemoteFiles(f"udt://{server.address}")
        # The second one connects again each time.
        for each in (files, again):
            asyncio.run(read(each))
            each.close()
        kept.append(files)


def test_connects_and_accepts_that_are_cancelled(kept):
    async def within(call, seconds):
        try:
            async with asyncio.timeout(seconds):
                await call
        except TimeoutError:
            pass

    async def cancel_all():
        with farhaul.listen(plain=True) as listener:
            for turn in range(SLOW_TIMES):
                await within(farhaul.Stream.connect_async(listener.address, plain=True), turn * 0.0001)
                await within(listener.accept_async(), turn * 0.00001)

    asyncio.run(cancel_all())


def test_calls_that_wait_while_their_loop_is_closed(kept):
    async def read(stream):
        await stream.read_async(1)

    async def begin(address):
        stream = await farhaul.Stream.connect_async(address, plain=True)
        asyncio.ensure_future(read(stream))
        await asyncio.sleep(0)

    with farhaul.listen(plain=True) as listener:
        for _ in range(SLOW_TIMES):
            loop = asyncio.new_event_loop()
            # It says that a task was destroyed that waited.
            loop.set_exception_handler(lambda loop, context: None)
            loop.run_until_complete(begin(listener.address))
            loop.close()


def test_servers_of_tasks(kept):
    async def echo(reader, writer):
        async with writer:
            writer.write(await reader.read())

    async def serve():
        async with await farhaul.start_server(echo) as server:
            reader, writer = await farhaul.open_connection(server.address)
            writer.write(b"x")
            await writer.write_eof()
            assert await reader.read() == b"x"
            writer.close()
            await writer.wait_closed()
            kept.extend([server, reader, writer])

    for _ in range(SLOW_TIMES):
        asyncio.run(serve())


def test_what_cannot_be_opened(kept, tmp_path):
    with farhaul.listen(plain=True) as listener:
        taken = listener.address
        for _ in range(SLOW_TIMES):
            for opens in (
                lambda: farhaul.listen(taken),
                lambda: farhaul.MessageSocket.listen(taken, plain=True),
                lambda: farhaul.serve(tmp_path, taken),
                lambda: farhaul.serve(tmp_path / "missing"),
                lambda: farhaul.connect("127.0.0.1:9", plain=True, connect_timeout=0.001),
                lambda: farhaul.copy("udt://127.0.0.1:9/x", tmp_path, plain=True, connect_timeout=0.001),
            ):
                with pytest.raises(farhaul.Error):
                    opens()


def test_simulations(kept):
    network = sim.Network()
    network.link("a", "b", rate="10mbit", rtt="10ms")
    network.flow("a", "b")
    for _ in range(SLOW_TIMES):
        kept.append(network.run(0.1))
