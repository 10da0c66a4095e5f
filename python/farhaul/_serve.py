"""Servers of directories: the other end of copies and of the file system."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self, Unpack

from ._described import with_options
from ._errors import Error
from ._farhaul import Report, Server
from ._options import Path, ServeOptions


class DirectoryServer:
    """A server of one directory, on threads of its own. It serves until it is closed.

    ::

        with farhaul.serve("data", "127.0.0.1:0") as server:
            farhaul.copy("result.csv", f"udt://{server.address}/results/")
    """

    def __init__(self, root: Path, listen: str, **options: Unpack[ServeOptions]) -> None:
        self._server = Server(root, listen, **options)

    @property
    def address(self) -> str:
        """Its address, ``host:port``."""
        return self._server.address

    @property
    def url(self) -> str:
        """The URL of its root."""
        return f"udt://{self.address}/"

    @property
    def key(self) -> str | None:
        """The fingerprint of its key, for ``host_key`` of a client. `None` if its connections are plain."""
        return self._server.key

    @property
    def is_running(self) -> bool:
        """Whether it serves."""
        return self._server.is_running

    def take_reports(self) -> list[tuple[Report, Error | None]]:
        """The sessions that have ended since the last call, at most 256: what each did, and its error."""
        return self._server.take_reports()

    def take_warnings(self) -> list[str]:
        """The warnings since the last call, at most 256."""
        return self._server.take_warnings()

    def reload(self) -> int:
        """Reads ``authorized_keys`` again. Clients that may do less than before lose their connections: returns their number."""
        return self._server.reload()

    def close(self) -> None:
        """Ends it, with its sessions."""
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def __repr__(self) -> str:
        return f"<farhaul.DirectoryServer at {self.address}{'' if self.is_running else ', closed'}>"


@with_options(ServeOptions)
def serve(root: Path, listen: str = "127.0.0.1:0", **options: Unpack[ServeOptions]) -> DirectoryServer:
    """Serves the directory ``root`` at the UDP port ``listen``, until the result is closed.

    Clients need a key that ``authorized_keys`` lists; this user's own is always admitted. `ServeOptions` lists the keyword
    arguments. Without a port, the system chooses one.
    """
    return DirectoryServer(root, listen, **options)
