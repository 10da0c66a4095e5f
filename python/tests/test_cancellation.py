"""Calls of tasks that are cancelled at any moment: nothing is lost, and nothing is done twice."""

import asyncio
import os
import random
import threading
from functools import partial
from itertools import count

import pytest

import farhaul
from farhaul._farhaul import RemoteFiles

MOST_TURNS = 5
"""Turns of the event loop before a call is cancelled, at most: from the waker's byte to the task takes three."""


async def persistently(make, random):
    """The result of a call that is cancelled after a few turns of the loop, again and again, until it has one."""

    async def call():
        return await make()

    for attempt in count():
        task = asyncio.ensure_future(call())
        # A request whose answer takes longer needs more patience.
        for _ in range(random.randrange(MOST_TURNS + attempt)):
            await asyncio.sleep(0)
        task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            # A breath for the threads that move packets.
            await asyncio.sleep(random.choice([0, 0, 0.0002]))


async def within_a_moment(make, random):
    """The same with time-outs."""
    for attempt in count():
        try:
            async with asyncio.timeout(random.random() * 0.0005 * (1 + attempt)):
                return await make()
        except TimeoutError:
            await asyncio.sleep(0)


@pytest.fixture(params=[persistently, within_a_moment])
def impatient(request):
    """A kind of call that can be cancelled."""
    dice = random.Random(7)
    return lambda make: request.param(make, dice)


def written(stream, content, size):
    """Writes `content` in parts of `size` bytes on a thread of its own, and finishes."""

    def write():
        for at in range(0, len(content), size):
            stream.write(content[at : at + size])
        stream.finish()

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


async def all_of(read, impatient):
    received = bytearray()
    while block := await impatient(read):
        received += block
    return bytes(received)


@pytest.mark.parametrize(("length", "size"), [(9_000, 6), (20_000_000, 100_000)])
async def test_reads_that_are_cancelled_lose_nothing(pair, impatient, length, size):
    near, far = pair
    content = os.urandom(length)
    thread = written(near, content, size)
    assert await all_of(lambda: far.read_async(65_536), impatient) == content
    thread.join()


async def test_reads_into_a_buffer_that_are_cancelled_lose_nothing(pair, impatient):
    near, far = pair
    content, room = os.urandom(1_000_000), bytearray(5_000)
    thread = written(near, content, 3_000)

    async def read():
        return bytes(room[: await far.readinto_async(room)])

    assert await all_of(read, impatient) == content
    thread.join()


async def test_every_call_of_a_reader_that_is_cancelled_loses_nothing(pair, impatient):
    near, far = pair
    lines = [b"%d %s\n" % (number, b"x" * (number % 90)) for number in range(400)]
    thread = written(near, b"".join(lines), 37)
    reader, room, received = farhaul.StreamReader(far), bytearray(11), bytearray()

    async def readinto():
        return bytes(room[: await reader.readinto(room)])

    calls = [reader.readline, lambda: reader.readexactly(20), lambda: reader.read(50), readinto, lambda: reader.readuntil(b"\n")]
    while len(received) < len(b"".join(lines)) - 500:
        received += await impatient(random.choice(calls))
    received += await impatient(reader.read)
    assert received == b"".join(lines) and reader.at_eof()
    thread.join()


async def test_bytes_that_arrived_before_a_cancellation_are_there_in_every_turn(pair):
    """The data has arrived and the task is cancelled, at each step of the way between them."""
    near, far = pair
    for turns in list(range(MOST_TURNS)) * 20:
        reading = asyncio.ensure_future(far.read_async(100))
        await asyncio.sleep(0)
        before = far.stats().packets_received
        near.write(b"a drop")
        while far.stats().packets_received == before:
            pass
        for _ in range(turns):
            await asyncio.sleep(0)
        reading.cancel()
        try:
            received = await reading
        except asyncio.CancelledError:
            received = await far.read_async(100)
        assert received == b"a drop", turns


async def test_a_read_of_all_that_ends_early_leaves_what_it_read(pair):
    near, far = pair
    near.write(b"what arrived ")
    far.timeout = 0.05
    for _ in range(3):
        with pytest.raises(TimeoutError):
            far.readall()
    far.timeout = None
    assert await far.read_async(5) == b"what " and far.read(4) == b"arri"
    near.write(b"and the rest")
    near.finish_sending()
    assert far.read() == b"ved and the rest"


@pytest.fixture
def sockets():
    """Two ends of a connection for messages."""
    with farhaul.MessageSocket.listen("127.0.0.1:0", plain=True) as listener:
        near = farhaul.MessageSocket.connect(listener.address, plain=True, buffer="64KiB")
        far = listener.accept(timeout=20)
        yield near, far
        near.abort()
        far.abort()


async def test_messages_that_are_awaited_with_cancellations_come_once(sockets, impatient):
    near, far = sockets
    expected = [b"%d" % number for number in range(500)]
    thread = threading.Thread(target=lambda: [near.send(message, in_order=True) for message in expected])
    thread.start()
    assert [await impatient(far.recv_async) for _ in expected] == expected
    thread.join()


async def test_messages_that_are_sent_with_cancellations_come_once(sockets, impatient):
    near, far = sockets
    expected = [b"%d" % number + bytes(20_000) for number in range(100)]
    received = []
    thread = threading.Thread(target=lambda: received.extend(far.recv(timeout=30) for _ in expected))
    thread.start()
    for message in expected:
        await impatient(partial(near.send_async, message, in_order=True))
    await asyncio.to_thread(thread.join)
    assert received == expected


async def test_connections_that_are_awaited_with_cancellations_are_all_accepted(impatient):
    with farhaul.listen(plain=True) as listener:

        def call():
            for number in range(20):
                stream = farhaul.connect(listener.address, plain=True)
                stream.write(b"%d" % number)
                stream.finish()

        thread = threading.Thread(target=call)
        thread.start()
        numbers = []
        for _ in range(20):
            stream = await impatient(listener.accept_async)
            numbers.append(int(stream.readall()))
        thread.join()
        assert numbers == list(range(20))


async def test_what_a_cancelled_write_has_taken_is_known(pair):
    near, far = pair
    content = os.urandom(20_000_000)
    received = []
    thread = threading.Thread(target=lambda: received.append(far.readall()))
    thread.start()
    dice, at = random.Random(7), 0
    while at < len(content):
        writing = near.write_async(content[at : at + 5_000_000])
        task = asyncio.ensure_future(writing)
        for _ in range(dice.randrange(MOST_TURNS)):
            await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        at += writing.taken
    await near.finish_async()
    await asyncio.to_thread(thread.join)
    assert received == [content]


def test_what_a_write_has_taken_that_timed_out_is_known(pair):
    near, far = pair
    near.timeout, content, at = 0.05, os.urandom(50_000_000), 0
    with pytest.raises(TimeoutError) as raised:
        while at < len(content):
            at += near.write(content[at:])
    at += raised.value.taken
    near.timeout, received = None, []
    thread = threading.Thread(target=lambda: received.append(far.readall()))
    thread.start()
    near.write(content[at:])
    near.finish()
    thread.join()
    assert at > 0 and received == [content]


async def test_writers_whose_every_call_is_cancelled_send_everything_once(pair, impatient):
    near, far = pair
    content = os.urandom(12_000_000)
    received = []
    thread = threading.Thread(target=lambda: received.append(far.readall()))
    thread.start()
    writer = farhaul.StreamWriter(near)
    for at in range(0, len(content), 1_000_000):
        writer.write(content[at : at + 1_000_000])
        await impatient(writer.drain)
    await impatient(writer.write_eof)
    await asyncio.to_thread(thread.join)
    far.finish()
    writer.close()
    await impatient(writer.wait_closed)
    assert received == [content]


async def test_a_writer_goes_on_behind_the_cancellation_of_its_task(pair):
    near, far = pair
    content = os.urandom(12_000_000)
    writer = farhaul.StreamWriter(near)
    writer.write(content)
    for _ in range(5):
        await asyncio.sleep(0.001)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
    received = []
    thread = threading.Thread(target=lambda: received.append(far.readall()))
    thread.start()
    await writer.write_eof()
    await asyncio.to_thread(thread.join)
    writer.abort()
    assert received == [content]


async def test_a_finish_that_is_cancelled_can_be_awaited_again(pair, impatient):
    near, far = pair
    near.write(b"everything")
    await impatient(near.finish_async)
    assert near.closed and far.readall() == b"everything"


async def test_copies_that_are_cancelled_are_whole_in_the_end(server, root, tmp_path):
    content = os.urandom(3_000_000)
    (root / "x").write_bytes(content)
    dice = random.Random(7)
    while True:
        try:
            async with asyncio.timeout(dice.random() * 0.5):
                report = await farhaul.copy_async(f"{server.url}x", tmp_path / "x")
                break
        except TimeoutError:
            assert not (tmp_path / "x").exists() or (tmp_path / "x").read_bytes() == content
    # The last cancellation may have come behind the end.
    assert report.files <= 1 and (tmp_path / "x").read_bytes() == content


async def test_requests_of_files_that_are_cancelled_can_be_made_again(server, root, impatient):
    content = os.urandom(300_000)
    (root / "x").write_bytes(content)
    files = RemoteFiles(f"udt://{server.address}")
    await files.stat(b"x")
    read = bytearray()
    while len(read) < len(content):
        block, _, _ = await impatient(partial(files.read, b"x", len(read), 50_000))
        read += block
    assert read == content
    assert (await impatient(lambda: files.stat(b"x")))["size"] == len(content)
    assert [name for name, _ in await impatient(lambda: files.list(b""))] == [b"x"]
    assert (await impatient(lambda: files.digest(b"x")))[0] == len(content)
    await impatient(lambda: files.put(b"y", content, replace=True))
    assert (root / "y").read_bytes() == content
    files.close()


async def test_a_file_whose_write_was_cancelled_is_given_up(server, root):
    files = RemoteFiles(f"udt://{server.address}")
    writer = await files.create(b"x", replace=False)
    writing = asyncio.ensure_future(writer.write(bytes(300 << 20)))
    await asyncio.sleep(0)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    with pytest.raises(farhaul.UsageError, match="given up"):
        await writer.finish()
    assert not (root / "x").exists()
    files.close()


async def test_a_call_that_nobody_awaits_is_reported(pair):
    near, _far = pair
    with pytest.warns(RuntimeWarning, match="never awaited"):
        near.write_async(b"lost")
    cancelled = asyncio.ensure_future(near.write_async(b"neither"))
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    near.read_async(1).close()


async def test_a_second_task_that_awaits_a_call_gets_an_error_and_the_first_one_the_result(pair):
    near, far = pair
    call = near.read_async(3)
    first = asyncio.create_task(call)
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="another task awaits this call"):
        await call
    far.write(b"abc")
    assert await first == b"abc"
