"""What the two ends of a pair name: a path of some worker, or a server outside of the cluster."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .._errors import UsageError

End = str | tuple[str, str]
"""``"worker:/path"`` or ``("worker", "/path")``, or ``"udt://host:port/path"``."""

_OF_WORKER = re.compile(r"((?:[a-z]+://)?[^/]+):(/(?!/).*)", re.DOTALL)


@dataclass(frozen=True)
class Place:
    """One end of a copy."""

    host: str | None
    """What the cluster calls the host of the path. `None` for a server outside of it."""
    path: str
    """An absolute path there, or the URL of the server."""

    @classmethod
    def read(cls, end: End) -> Place:
        """Reads an end of a pair.

        Raises `UsageError` if it is none.
        """
        if isinstance(end, tuple):
            host, path = end
            if not path.startswith("/"):
                raise UsageError("USAGE", f"the path {path!r} does not begin with /")
            return cls(host, _normal(path))
        if end.startswith("udt://"):
            return cls(None, end)
        found = _OF_WORKER.fullmatch(end)
        if found is None:
            message = f"{end!r} is no end of a copy: write 'worker:/path', ('worker', '/path') or 'udt://host:port/path'"
            raise UsageError("USAGE", message)
        return cls(found[1], _normal(found[2]))

    @property
    def name(self) -> str:
        """A short name of its host, for people."""
        return self.host if self.host is not None else self.path.removeprefix("udt://").partition("/")[0]

    def __str__(self) -> str:
        return self.path if self.host is None else f"{self.host}:{self.path}"


def _normal(path: str) -> str:
    if "\0" in path:
        raise UsageError("USAGE", f"the path {path!r} has a zero byte")
    return posixpath.normpath("/" + path.lstrip("/"))


@dataclass(frozen=True)
class Worker:
    """A worker that runs."""

    address: str
    name: str
    host: str
    resources: frozenset[str] = field(default_factory=frozenset)

    def is_at(self, host: str) -> bool:
        """Whether this names it: its name or address, a resource that it has, or its machine."""
        return host in (self.name, self.address) or host in self.resources or host == self.host


def workers_of(info: Mapping[str, Any]) -> dict[str, Worker]:
    """The workers in what a scheduler says of itself."""
    workers = {}
    for address, about in info["workers"].items():
        workers[address] = Worker(
            address=address,
            name=str(about.get("name", address)),
            host=str(about.get("host") or _host_of(address)),
            resources=frozenset(about.get("resources") or ()),
        )
    return workers


def workers_at(host: str, workers: Iterable[Worker]) -> list[Worker]:
    """Those that a host of a place names. Names of workers come before those of resources and machines."""
    all_there = sorted(workers, key=lambda worker: worker.address)
    named = [worker for worker in all_there if host in (worker.name, worker.address)]
    return named or [worker for worker in all_there if worker.is_at(host)]


def any_port_of(address: str) -> str:
    """The address of UDP where the server of a worker listens: that of the worker, and a free port."""
    host = _host_of(address)
    return f"[{host}]:0" if ":" in host else f"{host}:0"


def _host_of(address: str) -> str:
    return address.rpartition("://")[2].rpartition(":")[0].strip("[]")
