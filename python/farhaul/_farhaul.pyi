"""Types of the extension module, written by hand. `stubtest` compares them with it."""

import asyncio
from collections.abc import Sequence
from typing import Any, Unpack, final

from ._errors import Error
from ._options import CopyOptions, Path, ServeOptions

__version__: str

@final
class Report:
    """What a copy did: the fields of the record ``end`` of the command."""

    def as_dict(self) -> dict[str, Any]:
        """All fields, in a new dictionary."""
    def __getattr__(self, name: str) -> Any: ...

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

    def __new__(cls, src: Path | Sequence[Path], dst: Path, **options: Unpack[CopyOptions]) -> RunningCopy: ...
    def wait(self, seconds: float | None) -> Report | None:
        """Waits for the end, for at most so many seconds. `None` if it goes on."""
    def result(self) -> asyncio.Future[Report]:
        """A future of the report. To cancel it cancels the copy."""
    def progress(self) -> Progress:
        """How far it is."""
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
    def close(self) -> None:
        """Ends it, with its sessions. Returns once it has ended, or after 400 ms: then it ends by itself."""
