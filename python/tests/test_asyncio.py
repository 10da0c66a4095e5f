"""Streams for tasks."""

import asyncio
import gc
import logging

import pytest

import farhaul


async def echo(reader, writer):
    async with writer:
        while block := await reader.read(1 << 20):
            writer.write(block)
            await writer.drain()


async def test_tasks_talk_over_many_connections_at_once():
    async with await farhaul.start_server(echo) as server:

        async def call(number):
            reader, writer = await farhaul.open_connection(server.address)
            content = bytes([number]) * 300_000
            writer.write(content)
            await writer.write_eof()
            assert await reader.read() == content
            writer.close()
            await writer.wait_closed()

        await asyncio.gather(*(call(number) for number in range(8)))


async def test_lines_and_exact_reads():
    async def speak(reader, writer):
        async with writer:
            writer.writelines([b"one\n", b"two\n", b"12345", b"the rest"])

    async with await farhaul.start_server(speak) as server:
        reader, writer = await farhaul.open_connection(server.address)
        assert await reader.readline() == b"one\n"
        assert await reader.readuntil(b"o\n") == b"two\n"
        assert await reader.readexactly(5) == b"12345"
        room = bytearray(3)
        assert await reader.readinto(room) == 3 and room == b"the"
        with pytest.raises(asyncio.IncompleteReadError) as raised:
            await reader.readexactly(100)
        assert raised.value.partial == b" rest" and reader.at_eof()
        assert await reader.read(10) == b"" and [line async for line in reader] == []
        assert writer.get_extra_info("peername") == ("127.0.0.1", int(server.address.split(":")[1]))
        assert writer.get_extra_info("stats").bytes_read == 21
        writer.abort()


async def test_a_handler_that_fails_aborts_its_connection(caplog):
    async def fail(reader, writer):
        writer.write(b"half")
        await writer.drain()
        raise ValueError("defect")

    with caplog.at_level(logging.CRITICAL):
        async with await farhaul.start_server(fail) as server:
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
            reader, _writer = await farhaul.open_connection(server.address)
            with pytest.raises(ConnectionResetError):
                await reader.read()


async def test_a_cancelled_read_loses_nothing():
    with farhaul.listen() as listener:
        accepting = asyncio.ensure_future(listener.accept_async())
        near = await farhaul.Stream.connect_async(listener.address)
        far = await accepting
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(far.read_async(100), 0.05)
        await near.write_async(b"all of it")
        assert await far.read_async(100) == b"all of it"
        near.abort()


async def test_a_cancelled_connect_is_given_up():
    with farhaul.listen(plain=True) as deaf, pytest.raises(TimeoutError):
        await asyncio.wait_for(farhaul.Stream.connect_async(deaf.address, connect_timeout=30), 0.05)


async def test_writers_hold_back_and_fail():
    with farhaul.listen() as listener:
        stream = await farhaul.Stream.connect_async(listener.address, buffer="1MiB")
        far = await listener.accept_async()
        writer = farhaul.StreamWriter(stream)
        far.abort()
        with pytest.raises(farhaul.Error):
            for _ in range(1000):
                writer.write(bytes(1 << 20))
                await writer.drain()
        writer.abort()
        with pytest.raises(ValueError, match="closing"):
            writer.write(b"x")


async def test_messages_for_tasks():
    with farhaul.MessageSocket.listen("127.0.0.1:0", plain=True) as listener:
        near = farhaul.MessageSocket.connect(listener.address, plain=True)
        far = listener.accept(timeout=20)
        reading = far.recv_async()
        await near.send_async(b"hello")
        assert await reading == b"hello"
        near.abort()


def test_each_loop_has_a_bell_of_its_own():
    async def once():
        with farhaul.listen() as listener:
            accepting = asyncio.ensure_future(listener.accept_async())
            stream = await farhaul.Stream.connect_async(listener.address)
            (await accepting).abort()
            stream.abort()

    for _ in range(3):
        asyncio.run(once())
    gc.collect()


def test_without_a_loop_the_error_says_so():
    with farhaul.listen() as listener, pytest.raises(RuntimeError, match="no running event loop"):
        listener.accept_async()
