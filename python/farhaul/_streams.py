"""Streams, and their readers and writers for tasks of asyncio."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from ._described import with_options
from ._farhaul import Listener, Stream
from ._options import ConnectionOptions

if TYPE_CHECKING:
    from typing import TypeAlias

    from _typeshed import ReadableBuffer

    Handler: TypeAlias = Callable[["StreamReader", "StreamWriter"], Awaitable[object] | None]

_BLOCK = 256 << 10
"""Bytes that one call of the library moves at most."""
_AHEAD = 4 << 20
"""Bytes that a writer keeps before `StreamWriter.drain` waits."""


@with_options(ConnectionOptions)
def connect(address: str, **options: Unpack[ConnectionOptions]) -> Stream:
    """Connects to the listener at ``address``: ``host:port``, or a host alone with the port 9000.

    The connection is encrypted, and the server's key must be known: by ``host_key``, or by this user's file of known hosts.
    """
    return Stream.connect(address, **options)


@with_options(ConnectionOptions)
def listen(
    address: str = "127.0.0.1:0",
    *,
    clients: list[str] | None = None,
    **options: Unpack[ConnectionOptions],
) -> Listener:
    """Opens the UDP port at ``address`` for connections.

    ``clients`` are the public keys, ``ssh-ed25519 …``, of those who may connect. Default: the keys in ``authorized_keys``, and this
    user's own.
    """
    return Listener(address, clients=clients, **options)


class StreamReader:
    """The receiving side of a stream, as `asyncio.StreamReader` has it."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._ahead = bytearray()
        self._at_end = False

    def __repr__(self) -> str:
        return f"<farhaul.StreamReader of {self._stream!r}>"

    def at_eof(self) -> bool:
        """Whether everything was read, up to the end of the stream."""
        return self._at_end and not self._ahead

    async def read(self, n: int = -1) -> bytes:
        """Reads at most ``n`` bytes, and waits for the first. With -1, all bytes up to the end."""
        if n < 0:
            while await self._more():
                pass
            return self._take(len(self._ahead))
        if self._ahead or n == 0:
            return self._take(n)
        if self._at_end:
            return b""
        # The bytes go straight to the caller.
        block = await self._stream.read_async(n)
        self._at_end = not block
        return block

    async def readinto(self, buffer: Any) -> int:
        """Reads into ``buffer``, and returns the number of bytes. Zero is the end of the stream."""
        if not self._ahead:
            if self._at_end:
                return 0
            count = await self._stream.readinto_async(buffer)
            self._at_end = count == 0 and len(memoryview(buffer)) > 0
            return count
        view = memoryview(buffer).cast("B")
        taken = self._take(len(view))
        view[: len(taken)] = taken
        return len(taken)

    async def readexactly(self, n: int) -> bytes:
        """Reads ``n`` bytes. Raises `asyncio.IncompleteReadError` if the stream ends before."""
        if n < 0:
            raise ValueError("readexactly size can not be less than zero")
        while len(self._ahead) < n:
            if not await self._more():
                raise asyncio.IncompleteReadError(self._take(len(self._ahead)), n)
        return self._take(n)

    async def readuntil(self, separator: bytes = b"\n", *, limit: int = 1 << 20) -> bytes:
        """Reads up to and with ``separator``. Raises `asyncio.LimitOverrunError` if it does not come within ``limit`` bytes."""
        if not separator:
            raise ValueError("Separator should be at least one-byte string")
        begin = 0
        while (at := self._ahead.find(separator, begin)) < 0:
            begin = max(0, len(self._ahead) - len(separator) + 1)
            if begin > limit:
                raise asyncio.LimitOverrunError("the separator is not within the limit", begin)
            if not await self._more():
                raise asyncio.IncompleteReadError(self._take(len(self._ahead)), None)
        return self._take(at + len(separator))

    async def readline(self) -> bytes:
        """Reads a line with its end, or what is left at the end of the stream."""
        try:
            return await self.readuntil(b"\n")
        except asyncio.IncompleteReadError as end:
            return end.partial

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        line = await self.readline()
        if not line:
            raise StopAsyncIteration
        return line

    async def _more(self) -> bool:
        if self._at_end:
            return False
        block = await self._stream.read_async(_BLOCK)
        self._ahead += block
        self._at_end = not block
        return not self._at_end

    def _take(self, count: int) -> bytes:
        taken = bytes(self._ahead[:count])
        del self._ahead[:count]
        return taken


class StreamWriter:
    """The sending side of a stream, as `asyncio.StreamWriter` has it.

    `close` begins to finish the connection, and `wait_closed` waits until the peer has acknowledged everything. As an ``async with``
    block it does both at the end. Behind an exception it aborts: the peer does not take what it got for the whole stream.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._queue: deque[memoryview] = deque()
        self._queued = 0
        self._sending: asyncio.Task[None] | None = None
        self._sent = asyncio.Event()
        self._closing: asyncio.Task[None] | None = None
        self._aborted = False

    def __repr__(self) -> str:
        return f"<farhaul.StreamWriter of {self._stream!r}>"

    @property
    def stream(self) -> Stream:
        """The stream, for its other calls."""
        return self._stream

    def write(self, data: ReadableBuffer) -> None:
        """Takes ``data``. Call `drain` after it."""
        if self.is_closing():
            raise ValueError("write to a closing stream")
        block = memoryview(bytes(data))
        if not block:
            return
        self._queue.append(block)
        self._queued += len(block)
        self._go_on()

    def writelines(self, lines: Iterable[ReadableBuffer]) -> None:
        """Takes all of ``lines``."""
        for line in lines:
            self.write(line)

    async def drain(self) -> None:
        """Waits while more than 4 MiB wait to be sent. Raises the error of the connection."""
        await self._until(_AHEAD)

    def can_write_eof(self) -> bool:
        """Whether this side's direction can end alone."""
        return self._stream.peer_key is not None

    async def write_eof(self) -> None:
        """Ends this side's direction, once everything was sent. Unlike asyncio's, it must be awaited."""
        await self._until(0)
        self._stream.finish_sending()

    def close(self) -> None:
        """Begins to finish the connection: see `wait_closed`."""
        if self._closing is None and not self._aborted:
            self._closing = asyncio.get_running_loop().create_task(self._finish())

    def is_closing(self) -> bool:
        """Whether it was closed or aborted."""
        return self._closing is not None or self._aborted

    async def wait_closed(self) -> None:
        """Waits until the peer has acknowledged everything. Raises if it did not."""
        if self._closing is not None:
            await asyncio.shield(self._closing)

    def abort(self) -> None:
        """Ends the connection at once."""
        self._aborted = True
        self._stream.abort()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """``peername``, ``sockname``, ``peer_key`` or ``stats``."""
        match name:
            case "peername":
                return _pair(self._stream.peer)
            case "sockname":
                return _pair(self._stream.local)
            case "peer_key":
                return self._stream.peer_key
            case "stats":
                return self._stream.stats()
            case _:
                return default

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.abort()
            return
        self.close()
        await self.wait_closed()

    def _go_on(self) -> asyncio.Task[None]:
        """The task that sends what is queued. Another one takes the place of one that was cancelled."""
        if self._sending is None or self._sending.cancelled():
            self._sending = asyncio.get_running_loop().create_task(self._send())
        return self._sending

    async def _send(self) -> None:
        try:
            while self._queue:
                writing = self._stream.write_async(self._queue[0])
                try:
                    await writing
                finally:
                    # Also behind a cancellation, so that what was taken is not sent again.
                    self._queued -= writing.taken
                    rest = self._queue.popleft()[writing.taken :]
                    if rest:
                        self._queue.appendleft(rest)
                self._sent.set()
            self._sending = None
        finally:
            self._sent.set()

    async def _until(self, left: int) -> None:
        """Waits until at most ``left`` bytes are queued. Raises if they cannot be sent."""
        while self._queued > left:
            sending = self._go_on()
            if sending.done():
                return sending.result()
            self._sent.clear()
            await self._sent.wait()
        return None

    async def _finish(self) -> None:
        await self._until(0)
        await self._stream.finish_async()


def _pair(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


@with_options(ConnectionOptions)
async def open_connection(
    address: str,
    **options: Unpack[ConnectionOptions],
) -> tuple[StreamReader, StreamWriter]:
    """`connect` for tasks, with the reader and the writer of the stream."""
    stream = await Stream.connect_async(address, **options)
    return StreamReader(stream), StreamWriter(stream)


class StreamServer:
    """A listener that calls a function for each connection."""

    def __init__(self, listener: Listener, handler: Handler) -> None:
        self._listener = listener
        self._handler = handler
        self._tasks: set[asyncio.Task[None]] = set()
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    def __repr__(self) -> str:
        return f"<farhaul.StreamServer at {self.address}{'' if self.is_serving() else ', closed'}>"

    @property
    def address(self) -> str:
        """Its address, ``host:port``."""
        return self._listener.address

    @property
    def key(self) -> str | None:
        """The fingerprint of its key. `None` if its connections are plain."""
        return self._listener.key

    def is_serving(self) -> bool:
        """Whether it takes connections."""
        return not self._accepting.done()

    async def serve_forever(self) -> None:
        """Waits until it is closed."""
        await asyncio.shield(self._accepting)

    def close(self) -> None:
        """Takes no further connections. Those that exist go on."""
        self._accepting.cancel()
        self._listener.close()

    async def wait_closed(self) -> None:
        """Waits until the functions of all connections have returned."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        await self.wait_closed()

    async def _accept(self) -> None:
        while True:
            stream = await self._listener.accept_async()
            task = asyncio.get_running_loop().create_task(self._serve(stream))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, stream: Stream) -> None:
        try:
            result = self._handler(StreamReader(stream), StreamWriter(stream))
            if result is not None:
                await result
        except BaseException as error:
            stream.abort()
            if not isinstance(error, Exception):
                raise
            context = {"message": f"the handler of {stream.peer} failed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)


@with_options(ConnectionOptions)
async def start_server(
    handler: Handler,
    address: str = "127.0.0.1:0",
    *,
    clients: list[str] | None = None,
    **options: Unpack[ConnectionOptions],
) -> StreamServer:
    """`listen` for tasks. Calls ``handler`` with the reader and the writer of each connection, each in a task of its own.

    An exception of ``handler`` aborts its connection.
    """
    return StreamServer(listen(address, clients=clients, **options), handler)
