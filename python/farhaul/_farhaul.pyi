"""Types of the extension module, written by hand. `stubtest` compares them with it."""

import builtins
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, TypeVar, Unpack, final

from _typeshed import FileDescriptorLike, ReadableBuffer, WriteableBuffer

from ._errors import Error
from ._options import ConnectionOptions, CopyOptions, Path, ServeOptions, SshOptions
from .cc import Controller

_Result_co = TypeVar("_Result_co", covariant=True)

__version__: str

@final
class AsyncCall(Coroutine[Any, Any, _Result_co]):
    """A call of a task: await it, as a coroutine. Before that it reads, sends and accepts nothing. Only `Stream.connect_async` and what
    a `RemoteWriter` sends begin at once.

    The task takes the result in the step in which it goes on. So a call that was cancelled has read, sent and accepted nothing that
    its task did not get.
    """

    def __await__(self) -> Generator[Any, None, _Result_co]: ...
    def __next__(self) -> Any: ...
    def send(self, _value: None) -> Any: ...
    def throw(
        self, kind: type[BaseException] | BaseException, value: object = None, _trace: TracebackType | None = None, /
    ) -> Any: ...
    def close(self) -> None:
        """Gives the call up."""
    @property
    def taken(self) -> int:
        """Bytes that a write has taken so far, also if it was cancelled."""

def make_key(path: Path) -> str:
    """Makes a key pair with its private key in this file. Returns the public key, as OpenSSH writes it."""

@final
class Report:
    """What a copy did: the fields of the record ``end`` of the command."""

    def as_dict(self) -> dict[str, Any]:
        """All fields, in a new dictionary."""
    @property
    def address(self) -> str | None:
        """The address of the other side."""
    @property
    def direction(self) -> Literal["sent", "received"] | None:
        """Direction of the data, seen from this side."""
    @property
    def bytes(self) -> int:
        """Payload; of a copy that broke off, only that of the verified files."""
    @property
    def files(self) -> int | None:
        """Files copied and verified; `None` if no files are copied."""
    @property
    def kept(self) -> int | None:
        """Files that the target had."""
    @property
    def kept_bytes(self) -> int | None:
        """Their bytes."""
    @property
    def directories(self) -> int | None:
        """Directories that were made or completed."""
    @property
    def links(self) -> int | None:
        """Symbolic and hard links that were made."""
    @property
    def deleted(self) -> int | None:
        """Entries of the target that were removed."""
    @property
    def moved_bytes(self) -> int | None:
        """Bytes of content that crossed the network."""
    @property
    def spared_bytes(self) -> int | None:
        """Bytes of content that did not, because the target had them or they are holes."""
    @property
    def repaired_chunks(self) -> int | None:
        """Chunks of 1 MiB that arrived damaged and came again."""
    @property
    def failed(self) -> int | None:
        """Files and directories that were not copied."""
    @property
    def seconds(self) -> float:
        """From the call to the confirmation."""
    @property
    def goodput_bps(self) -> int | None:
        """The receiver's payload in bit/s, from its first to its last byte; `None` if no time passed."""
    @property
    def packets_sent(self) -> int:
        """Data packets, retransmissions included."""
    @property
    def packets_retransmitted(self) -> int:
        """Retransmissions among them."""
    @property
    def packets_received(self) -> int:
        """Data packets that arrived, duplicates included."""
    @property
    def packets_dropped(self) -> int | None:
        """Data packets that died in the buffer of this host's socket; `None` if none did."""
    @property
    def mtu_bytes(self) -> int | None:
        """The last size of full packets, headers included."""
    @property
    def loss_ratio(self) -> float:
        """Packets reported lost, as a share of those sent."""
    @property
    def rtt_us(self) -> dict[str, int]:
        """Round-trip times in µs: ``min``, ``mean``, ``p99``."""
    @property
    def cpu_seconds(self) -> dict[str, float]:
        """Processor time of this process: ``user`` and ``system``."""
    @property
    def peer(self) -> dict[str, Any] | None:
        """The figures of the other side; `None` if it cannot report."""
    @property
    def controller(self) -> str:
        """The congestion controller of this side, with its options."""
    @property
    def protocol(self) -> str:
        """The wire protocol with its options."""
    @property
    def limited_by(self) -> str | None:
        """What limited the transfer; `None` without a verdict."""
    @property
    def limited_by_share(self) -> float | None:
        """Its share of the time."""
    @property
    def verified(self) -> bool:
        """Whether both sides compared digests."""
    @property
    def security(self) -> str | None:
        """``tls1.3``, ``ssh`` or ``none``."""
    @property
    def suite(self) -> str | None:
        """Key exchange and cipher of the connection."""
    @property
    def peer_key(self) -> str | None:
        """Fingerprint of the peer's key."""
    @property
    def session(self) -> int | None:
        """Number of the session of a server."""
    @property
    def requests(self) -> int | None:
        """Requests of a session of the file service."""
    @property
    def model_bps(self) -> int | None:
        """The goodput that the model of a sender of RBUDP predicts."""
    @property
    def control_stream(self) -> dict[str, Any] | None:
        """The control stream beside the transfer."""

@final
class Progress:
    """How far a copy is."""

    @property
    def bytes(self) -> int:
        """Bytes that have moved."""
    @property
    def total_bytes(self) -> int | None:
        """Bytes to move. `None` while the sender lists them."""
    @property
    def files(self) -> int:
        """Files that have their names, or that the target had."""
    @property
    def total_files(self) -> int | None:
        """Files to copy. `None` while the sender lists them."""
    @property
    def path(self) -> str | None:
        """The file that began last."""
    @property
    def seconds(self) -> float:
        """Time since the copy began."""
    @property
    def warning(self) -> str | None:
        """The last warning, for instance of a limit to speed."""
    @property
    def retries(self) -> int:
        """Attempts after the connection was lost."""

@final
class RunningCopy:
    """A copy that runs on a thread of its own."""

    def __new__(
        cls, src: Path | Sequence[Path], dst: Path, *, list_files: bool = False, **options: Unpack[CopyOptions]
    ) -> RunningCopy: ...
    def wait(self, seconds: float | None) -> Report | None:
        """Waits for the end, for at most so many seconds. `None` if it goes on."""
    def result(self) -> AsyncCall[Report]:
        """The report, for tasks. To cancel the call cancels the copy."""
    def progress(self) -> Progress:
        """How far it is."""
    def take_files(self) -> list[dict[str, Any]]:
        """The files that have ended since the last call, if it was begun with ``list_files``."""
    def cancel(self) -> None:
        """Cancels it. Returns once it has ended, or after 300 ms: then it ends by itself."""

@final
class Server:
    """A server of one directory, on threads of its own."""

    def __new__(cls, root: Path, listen: str, **options: Unpack[ServeOptions]) -> Server: ...
    @property
    def address(self) -> str:
        """Its address, ``host:port``."""
    @property
    def key(self) -> str | None:
        """The fingerprint of its key. `None` if its connections are plain."""
    @property
    def is_running(self) -> bool:
        """Whether it serves."""
    def take_reports(self) -> list[tuple[Report, Error | None]]:
        """The reports of sessions that have ended since the last call, with the error of each."""
    def take_warnings(self) -> list[str]:
        """The warnings since the last call."""
    def reload(self) -> int:
        """Reads the clients' keys again. Returns the number of connections that ended."""
    def close(self) -> None:
        """Ends it, with its sessions. Returns once it has ended, or after 400 ms: then it ends by itself."""

@final
class Stats:
    """Counters and estimates of a connection. The name of each has its unit."""

    @property
    def seconds(self) -> float:
        """Time since the connection was opened."""
    @property
    def rtt_seconds(self) -> float:
        """Smoothed round-trip time."""
    @property
    def min_rtt_seconds(self) -> float:
        """Minimum round-trip time of the last ten to twenty seconds; zero before the first."""
    @property
    def bytes_written(self) -> int:
        """Payload bytes taken from the program."""
    @property
    def bytes_acked(self) -> int:
        """Payload bytes that the peer has acknowledged."""
    @property
    def bytes_received(self) -> int:
        """Payload bytes received."""
    @property
    def bytes_read(self) -> int:
        """Payload bytes given to the program."""
    @property
    def packets_sent(self) -> int:
        """Data packets sent, retransmissions included."""
    @property
    def packets_retransmitted(self) -> int:
        """Data packets sent again."""
    @property
    def packets_lost_sending(self) -> int:
        """Packets that the peer reported lost."""
    @property
    def packets_received(self) -> int:
        """Data packets received."""
    @property
    def packets_lost_receiving(self) -> int:
        """Packets that this side found missing."""
    @property
    def window_packets(self) -> int:
        """Congestion window."""
    @property
    def in_flight_packets(self) -> int:
        """Packets sent and not acknowledged."""
    @property
    def packet_size_bytes(self) -> int:
        """Size of a full packet, headers of IP included; zero if unknown."""
    @property
    def memory_bytes(self) -> int:
        """Memory of the buffers of this side."""

@final
class Stream:
    """A reliable stream of bytes in both directions.

    One thread can read while another one writes. As a ``with`` block it finishes the connection at the end, and behind an exception
    it aborts it: then the peer does not take what it got for the whole stream. So does a stream that is dropped.

    It has the calls of a raw file: ``io.BufferedReader(stream)`` reads lines. Buffers are read and written in place; nobody else may
    change them during a call.
    """

    @staticmethod
    def connect(address: str, **options: Unpack[ConnectionOptions]) -> Stream:
        """Connects to a listener."""
    @staticmethod
    def connect_async(address: str, **options: Unpack[ConnectionOptions]) -> AsyncCall[Stream]:
        """`connect` for tasks. The connection of a call that was cancelled is closed."""
    def read(self, size: int | None = None, /) -> bytes:
        """Reads at most ``size`` bytes, and waits for the first. Without a size, all bytes up to the end."""
    def readall(self) -> bytes:
        """Reads all bytes up to the end. Behind an exception, a later read begins where this one did."""
    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Reads into ``buffer``, and returns the number of bytes. Zero is the end of the stream."""
    def read_async(self, size: int) -> AsyncCall[bytes]:
        """At most ``size`` bytes, for tasks. None are the end. A call that was cancelled has read nothing."""
    def readinto_async(self, buffer: WriteableBuffer) -> AsyncCall[int]:
        """The same into ``buffer``, with the number of bytes."""
    def write(self, data: ReadableBuffer, /) -> int:
        """Takes all of ``data``, and returns its number of bytes. They leave as the path permits.

        An exception has the number of bytes that were taken before it, as ``taken``.
        """
    def write_async(self, data: ReadableBuffer) -> AsyncCall[None]:
        """`write` for tasks. A call that was cancelled has taken as many bytes as its ``taken`` says."""
    def sendfile(self, file: FileDescriptorLike, offset: int = 0, count: int | None = None) -> int:
        """Sends bytes of a file, all of them without ``count``. Returns their number."""
    def recvfile(self, file: FileDescriptorLike, count: int | None = None) -> int:
        """Receives bytes into a file, from its position on: ``count``, or all up to the end. Returns their number."""
    def finish(self) -> None:
        """Waits until the peer has acknowledged everything, then closes the connection. Raises if it did not."""
    def finish_async(self) -> AsyncCall[None]:
        """The same for tasks. A call that was cancelled can be made again."""
    def finish_sending(self) -> None:
        """Ends this side's direction, and returns at once. Needs an encrypted connection."""
    def abort(self) -> None:
        """Ends the connection at once. The peer does not take what it got for the whole stream."""
    def close(self) -> None:
        """Finishes the connection, unless it has ended."""
    def flush(self) -> None:
        """Does nothing: what was written leaves without it."""
    def readable(self) -> bool: ...
    def writable(self) -> bool: ...
    def seekable(self) -> bool: ...
    def seek(self, _offset: int, _whence: int = 0, /) -> int:
        """There are no places in a stream: as for every raw file, this raises `io.UnsupportedOperation`."""
    def tell(self) -> int:
        """As `seek`."""
    def truncate(self, _size: int | None = None, /) -> int:
        """As `seek`."""
    @property
    def closed(self) -> bool:
        """Whether this side has ended the connection."""
    @property
    def peer(self) -> str:
        """The address of the peer, ``host:port``."""
    @property
    def local(self) -> str:
        """The address of this side, ``host:port``."""
    @property
    def peer_key(self) -> str | None:
        """The fingerprint of the peer's key. `None` if the connection is plain."""
    @property
    def timeout(self) -> float | None:
        """Longest wait of a call, in seconds. `None` for ever, which is the default. Tasks have their own time-outs."""
    @timeout.setter
    def timeout(self, seconds: float | None) -> None: ...
    def set_controller(self, controller: str | Callable[[], Controller]) -> None:
        """Replaces the congestion controller of this side, while the stream goes on: a name, or a class below `farhaul.cc.Controller`."""
    def set_rate(self, rate: int | str | None) -> None:
        """Caps the sending rate from now on. `None` takes the cap away."""
    def stats(self) -> Stats:
        """Counters and estimates."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None: ...

@final
class Listener:
    """A port to which others connect."""

    def __new__(
        cls,
        address: str,
        *,
        clients: Sequence[str] | None = None,
        **options: Unpack[ConnectionOptions],
    ) -> Listener: ...
    def accept(self, timeout: float | None = None) -> Stream:
        """Waits for the next connection, for at most so many seconds."""
    def accept_async(self) -> AsyncCall[Stream]:
        """The same for tasks. A connection that comes for a call that was cancelled waits for the next one."""
    @property
    def address(self) -> str:
        """Its address, ``host:port``."""
    @property
    def key(self) -> str | None:
        """The fingerprint of its key. `None` if its connections are plain."""
    def close(self) -> None:
        """Refuses further connections. Calls that wait end. Streams go on, and without them the port is free."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Stream: ...

@final
class MessageSocket:
    """Sends and receives whole messages over a plain connection.

    As a ``with`` block it finishes the connection at the end, and behind an exception it aborts it.
    """

    @staticmethod
    def connect(address: str, **options: Unpack[ConnectionOptions]) -> MessageSocket:
        """Connects to a listener for messages. The connection is plain: ``plain=True`` says that you know."""
    @staticmethod
    def listen(address: str, **options: Unpack[ConnectionOptions]) -> MessageListener:
        """Opens the UDP port at ``address``. Its connections are plain: ``plain=True`` says that you know."""
    def send(
        self,
        message: ReadableBuffer,
        /,
        *,
        ttl: float | None = None,
        in_order: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Sends a message whole, and waits for room if there is none.

        With ``ttl`` it is dropped if it was not delivered within so many seconds. With ``in_order`` it is delivered only after all
        earlier messages.
        """
    def recv(self, size: int = 1048576, /, *, timeout: float | None = None) -> bytes | None:
        """Receives the next message. `None` at the end. Raises for one of more than ``size`` bytes, and drops it."""
    def send_async(self, message: ReadableBuffer, /, *, ttl: float | None = None, in_order: bool = False) -> AsyncCall[None]:
        """`send` for tasks. A call that was cancelled has sent nothing."""
    def recv_async(self, size: int = 1048576, /) -> AsyncCall[bytes | None]:
        """`recv` for tasks. A call that was cancelled has received nothing."""
    def finish(self, timeout: float | None = None) -> None:
        """Waits until the peer has acknowledged everything, then closes the connection."""
    def abort(self) -> None:
        """Ends the connection at once. Messages that were not acknowledged are lost."""
    @property
    def peer(self) -> str:
        """The address of the peer, ``host:port``."""
    def stats(self) -> Stats:
        """Counters and estimates."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None: ...

@final
class MessageListener:
    """A port to which others connect for messages."""

    def accept(self, timeout: float | None = None) -> MessageSocket:
        """Waits for the next connection, for at most so many seconds."""
    @property
    def address(self) -> str:
        """Its address, ``host:port``."""
    def close(self) -> None:
        """Refuses further connections. Calls that wait end. Connections go on, and without them the port is free."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None: ...

_TreePage: TypeAlias = tuple[
    list[tuple[bytes, list[tuple[bytes, dict[str, Any]]], Error | None]],
    tuple[bytes, bytes] | None,
]

@final
class RemoteFiles:
    """The files of another host. One connection carries the requests of all tasks; the first of them makes it."""

    def __new__(cls, host: str, **options: Unpack[SshOptions]) -> RemoteFiles: ...
    def stat(self, path: bytes) -> AsyncCall[dict[str, Any]]:
        """The properties of an entry: ``type``, ``size``, ``mode``, ``mtime_ns``, perhaps ``ctime_ns``, ``destination``, ``uid``, ``gid``."""
    def list(self, path: bytes) -> AsyncCall[builtins.list[tuple[bytes, dict[str, Any]]]]:
        """The names of a directory, with the properties of each."""
    def list_tree(self, path: bytes, depth: int, cursor: tuple[bytes, bytes] | None = None) -> AsyncCall[_TreePage | None]:
        """A page of the directories from ``path`` on, at most ``depth`` levels, and the cursor of the next page; `None` at the end.

        Each directory has its path below the first one, its entries as `list` has them, and why it cannot be read. A server that
        does not know the request gives `None`.
        """
    def read(self, path: bytes, offset: int, length: int) -> AsyncCall[tuple[bytes, bool, tuple[int, int, int | None]]]:
        """At most ``length`` bytes from ``offset`` on; with a negative one, the last bytes.

        With them comes whether the file ends behind them, and their version: the size of the file, and when its content and its
        properties changed, in nanoseconds since 1970.
        """
    def create(
        self, path: bytes, *, replace: bool, size: int | None = None, mtime: float | None = None
    ) -> AsyncCall[RemoteWriter]:
        """Begins a file. Missing directories are made."""
    def put(self, path: bytes, content: ReadableBuffer, *, replace: bool) -> AsyncCall[tuple[int, str | None]]:
        """Writes a file with this content. Missing directories are made. Returns its size and its digest."""
    def create_dir(self, path: bytes, parents: bool) -> AsyncCall[bool]:
        """Makes a directory. Returns whether it is new."""
    def remove(self, path: bytes, kind: Literal["file", "directory", "either", "tree"], most: int = ...) -> AsyncCall[int]:
        """Removes what ``kind`` names, and returns the number of entries."""
    def rename(self, from_: bytes, to: bytes, replace: bool) -> AsyncCall[None]:
        """Gives an entry another name. Missing directories are made."""
    def copy(self, from_: bytes, to: bytes, replace: bool) -> AsyncCall[tuple[int, str | None]]:
        """Copies a file on the server."""
    def digest(self, path: bytes) -> AsyncCall[tuple[int, str | None]]:
        """The size and the BLAKE3 digest of a file, which the server reads."""
    def close(self) -> None:
        """Ends the connection once every request has its answer. The next request makes a new one."""
    def cancel(self) -> None:
        """Ends the connection at once. Nothing can be requested any more."""

@final
class OnDrop:
    """Calls a function when it is dropped, with whether an exception is on its way, which ``__del__`` cannot know."""

    def __new__(cls, call: Callable[[bool], None]) -> OnDrop: ...

@final
class RemoteWriter:
    """A file under way. It has its name after `finish`, or nothing of it stays."""

    def write(self, data: ReadableBuffer) -> AsyncCall[None]:
        """Sends all of ``data``. One call at a time."""
    def finish(self) -> AsyncCall[tuple[int, str | None]]:
        """Ends the file, and waits until it is safe under its name."""
    def discard(self) -> None:
        """Gives the file up. Nothing of it stays."""

@final
class NetworkPath:
    """The measurements of a connection. The same object in every call, with the values of that call. `farhaul.cc` has it as `Path`."""

    @property
    def now(self) -> float:
        """Time of the event, s."""
    @property
    def mss(self) -> int:
        """Packet size on the wire with all headers, bytes."""
    @property
    def rtt(self) -> float:
        """Smoothed RTT, s."""
    @property
    def rtt_var(self) -> float:
        """Mean deviation of the RTT, s."""
    @property
    def min_rtt(self) -> float | None:
        """Minimum RTT of the last ten to twenty seconds, s."""
    @property
    def latest_rtt(self) -> float | None:
        """Latest RTT sample, s."""
    @property
    def arrival_rate(self) -> float | None:
        """Arrival rate that the receiver reports, packets/s."""
    @property
    def capacity(self) -> float | None:
        """Capacity by the receiver's probe pairs, packets/s."""
    @property
    def delivery_rate(self) -> float | None:
        """Delivery rate that this side sees in acknowledgements, packets/s."""
    @property
    def in_flight(self) -> int:
        """Packets sent and not acknowledged."""
    @property
    def outstanding(self) -> float:
        """Packets in flight that neither arrived nor are known to be lost."""
    @property
    def flow_window(self) -> int:
        """The receiver's free buffer, packets."""
    @property
    def max_window(self) -> int:
        """The largest flow window so far, packets."""
    @property
    def next_seq(self) -> int:
        """Sequence number of the next new packet."""
    @property
    def packets_sent(self) -> int:
        """Packets sent so far, retransmissions included."""
    @property
    def application_limited(self) -> bool:
        """Whether the sender had nothing to send although it was permitted to."""
    @property
    def seed(self) -> int:
        """Seed for random draws. A simulation with the same seed gives every connection the same one again."""

@final
class Control:
    """The settings of a connection that belong to its controller. The same object in every call.

    A value that no connection can use raises `ValueError` where it is set.
    """

    cwnd: float | None
    """Congestion window, packets. `None`: no window, so that only the receiver's limits."""
    send_period: float | None
    """Time from one packet to the next, s. `None`: packets leave as the window permits."""
    packet_rate: float | None
    """The same as a rate, packets/s."""
    window_of_outstanding: bool
    """Whether the window limits packets that neither arrived nor are known to be lost. Otherwise it limits all behind the first gap."""
    freeze_until: float | None
    """No data packet leaves before this time of `Path.now`, s."""
    burst: int | None
    """Most packets that leave together."""
    ack_period: float | None
    """Longest time between full acknowledgements, s; at most 0.01."""
    ack_interval: int | None
    """A light acknowledgement after so many data packets, in place of 64."""
    full_ack_interval: int | None
    """An acknowledgement after so many data packets, beside those by time."""
    rto: float | None
    """Replaces the expiration time, s."""
    def send_message(self, kind: int, body: bytes) -> None:
        """Sends a packet to the controller of the peer, which may be lost. Only for controllers with `on_custom_message`."""

@final
class Ack:
    """The peer acknowledged new data in order. The same object in every call."""

    @property
    def seq(self) -> int:
        """Everything before this sequence number has arrived."""
    @property
    def newly_acked(self) -> int:
        """Packets newly covered."""
    @property
    def light(self) -> bool:
        """Whether it is light: progress without measurements."""
    @property
    def rtt(self) -> float | None:
        """The RTT sample of this acknowledgement, s."""
    @property
    def sent_rate(self) -> float | None:
        """The rate at which the covered packets were sent, packets/s."""
    @property
    def delivery_rate(self) -> float | None:
        """The rate at which they were acknowledged, packets/s."""

@final
class Delivery:
    """Packets are known to have arrived, in order or not. The same object in every call."""

    @property
    def newly_delivered(self) -> float:
        """Packets newly known to have arrived."""
    @property
    def delivered(self) -> float:
        """Packets known to have arrived so far."""
    @property
    def rtt(self) -> float | None:
        """RTT of the packet that left last among them, s."""
    @property
    def rate(self) -> float | None:
        """Delivery rate since that packet left, packets/s."""
    @property
    def window_limited(self) -> bool:
        """Whether the window has held packets back since the last such event."""

@final
class Loss:
    """The peer reported losses. The same object in every call."""

    @property
    def newly_lost(self) -> int:
        """Packets reported for the first time, or lost once more. Zero if the report repeats earlier ones."""
    @property
    def largest_sent(self) -> int:
        """The sequence number of the last packet sent so far."""
    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The reported packets: pairs of the first and the last sequence number."""

@final
class Timeout:
    """Nothing came from the peer for the expiration time while data was unacknowledged. The same object in every call."""

    @property
    def count(self) -> int:
        """How many have come in a row, with this one."""
    @property
    def largest_sent(self) -> int:
        """The sequence number of the last packet sent so far."""

@final
class Packets:
    """Data packets that left or arrived since the last call, a sequence of `Packet`. The same object in every call."""

    @property
    def bytes(self) -> int:
        """Bytes of their payloads."""
    @property
    def retransmitted(self) -> int | None:
        """How many of them are retransmissions; `None` of packets that arrived."""
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Packet: ...
    def __iter__(self) -> Iterator[Packet]: ...

@final
class Packet:
    """A data packet."""

    @property
    def seq(self) -> int:
        """Its sequence number."""
    @property
    def payload(self) -> int:
        """Its payload, bytes."""
    @property
    def message(self) -> int | None:
        """The number of its message; in a stream, each packet is a message of its own. `None` if the packet does not carry it."""
    @property
    def at(self) -> float:
        """When its burst left, or reached this computer, s of the clock of `Path.now`."""
    @property
    def retransmission(self) -> bool | None:
        """Whether it was sent before; `None` of a packet that arrived."""

@final
class RunningExperiment:
    """An experiment that runs on threads of its own."""

    def __new__(cls, name: str, text: str | None = None, **options: Any) -> RunningExperiment: ...
    def wait(self, seconds: float | None) -> dict[str, Any] | None:
        """Waits for the end, for at most so many seconds. `None` if it goes on."""
    def progress(self) -> tuple[int, int]:
        """The number of finished runs, and of all."""
    def cancel(self) -> None:
        """Stops it. Runs end within a few milliseconds of their own time."""

@final
class StoredRuns:
    """The records in a folder, which belong to one sweep until they are closed."""

    def __new__(cls, folder: Path) -> StoredRuns: ...
    def known(self, name: str, text: str | None = None, **options: Any) -> list[dict[str, Any]] | None:
        """The records of an experiment, whose arguments are those of `RunningExperiment`. `None` if one of them is missing."""
    def describe(self, name: str, text: str | None = None, **options: Any) -> None:
        """Notes what the records are of: an experiment, whose arguments are those of `RunningExperiment`."""
    def add(self, record: str) -> None:
        """Adds a record, which is the JSON of one that an experiment has given."""
    def close(self) -> None:
        """Lets others have the folder."""

def shipped_figures() -> list[dict[str, Any]]:
    """The shipped figures: identifiers, titles, papers, scores."""

def run_arena(
    controllers: list[str],
    paths: tuple[list[int], int, list[str]],
    jobs: int | None,
    out: str | None,
) -> list[dict[str, Any]]:
    """Runs controllers on random paths, and writes the pages about them into a folder."""

def _before_fork() -> None:
    """Waits for threads that enter the interpreter, and keeps others from it."""

def _after_fork() -> None:
    """Lets threads enter the interpreter again."""

def _begin_child() -> None:
    """Forgets what other threads of the parent process were doing."""

def _wait_idle() -> None:
    """Waits until the peers of closed connections know it, and closed ports are free; three seconds at most."""

def _end() -> None:
    """Lets no thread come back to the interpreter from now on, and waits for those on the way and for closed connections."""

def _has_ended() -> bool:
    """Whether `_end` was called."""

def _register(name: str, controller: Callable[[], Controller]) -> None:
    """Gives a name to a class in this process."""
