"""What a worker has for one copy: a key, and at a sink a server. It runs on workers, called by the driver.

::

    driver                      worker of a sink            worker of a source
      │── begin ────────────────▶ new key                     new key
      │◀─ public keys ────────────────┘ ◀────────────────────────┘
      │── open_server, admit ───▶ server: these keys may write into these directories
      │── a task ─────────────────────────────────────────────▶ farhaul.copy to udt://sink
      │── revoke ───────────────▶ ends the sessions of a worker that was lost, so that their files can go on
      │── end ──────────────────▶ everything is closed and removed ◀─

A worker whose driver is silent for `LEASE` ends everything by itself.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import hashlib
import os
import posixpath
import re
import shutil
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from .._errors import Error, _error
from .._farhaul import RunningCopy, make_key
from .._serve import DirectoryServer, serve
from ._distributed import Worker

LEASE = 120.0
"""Seconds of silence after which a worker takes the driver for gone."""
_BEAT = 1.0
"""Seconds between two looks of a worker at what it has."""
_SESSIONS_END = 3.0
"""Longest wait for sessions whose key was revoked, in seconds. Their connections are closed already."""
_MOST_SESSIONS = 1024
"""Sessions of one server. The driver starts far fewer tasks at a time."""
_CODES = {
    errno.EACCES: "PERMISSION_DENIED",
    errno.EPERM: "PERMISSION_DENIED",
    errno.EROFS: "PERMISSION_DENIED",
    errno.EEXIST: "NOT_A_DIRECTORY",
    errno.ENOTDIR: "NOT_A_DIRECTORY",
}
"""Codes of directories that another attempt would not make either."""
_PLAIN_WORD = re.compile(r"[!-+\--~]+")
"""A path that a line of authorized keys can hold: printable, without blanks and commas."""


@dataclass(frozen=True)
class Service:
    """What a server is to serve."""

    directories: tuple[str, ...]
    """Clients may write below these. Those that are missing are made."""
    listen: str
    options: dict[str, Any] = field(default_factory=dict)
    may_delete: bool = False


@dataclass(frozen=True)
class Served:
    """Where a server is."""

    address: str
    key: str | None
    """Its fingerprint. `None` for plain connections."""
    root: str
    refused: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The directories that it could not make, with a code and the reason. It serves the others."""

    def url(self, path: str) -> str:
        """The URL of a path of its host."""
        below = posixpath.relpath(path, self.root)
        return f"udt://{self.address}/{'' if below == '.' else quote(os.fsencode(below))}"


class Agent:
    """What one worker has for one copy."""

    def __init__(self, worker: Worker, session: str) -> None:
        self.lock = threading.Lock()
        self.cancelled: set[str] = set()
        self.running: dict[str, tuple[RunningCopy, int]] = {}
        self.is_ended = False
        self.moved_bytes = 0
        self._worker = worker
        self._session = session
        self._folder = tempfile.mkdtemp(prefix="farhaul-dask-")
        self.public_key = make_key(self.key_file)
        self._server: DirectoryServer | None = None
        self._service: Service | None = None
        self._admitted: set[str] = set()
        self._ended_sessions: dict[str, int] = defaultdict(int)
        self._deadline = time.monotonic() + LEASE

    @property
    def key_file(self) -> str:
        """The private key. It exists on this worker alone, and as long as the copy."""
        return os.path.join(self._folder, "key")

    @property
    def is_forgotten(self) -> bool:
        """Whether the driver is gone."""
        return time.monotonic() > self._deadline

    def renew(self) -> None:
        """Notes that the driver is there."""
        self._deadline = time.monotonic() + LEASE

    def open_server(self, service: Service, keys: Iterable[str]) -> Served:
        """Serves directories for these keys. Raises the reason if it can make none of them."""
        refused: dict[str, tuple[str, str]] = {}
        for directory in service.directories:
            try:
                os.makedirs(directory, exist_ok=True)
            except OSError as error:
                refused[directory] = _CODES.get(error.errno or 0, "LOCAL_IO"), str(error)
        directories = tuple(directory for directory in service.directories if directory not in refused)
        if not directories:
            code, why = next(iter(refused.values()))
            raise _error(code, f"cannot serve {', '.join(refused)}: {why}", None, None)
        root = os.path.commonpath(directories)
        self._service = service = replace(service, directories=directories)
        is_plain = bool(service.options.get("plain"))
        secure: dict[str, Any] = {}
        if not is_plain:
            self._admitted.update(keys)
            self._write_keys()
            secure = {"key": self.key_file, "authorized_keys": self._keys_file}
        self._server = serve(root, service.listen, max_sessions=_MOST_SESSIONS, **secure, **service.options)
        return Served(self._server.address, self._server.key, root, refused)

    def admit(self, keys: Iterable[str]) -> None:
        """Lets more clients write."""
        self._admitted.update(keys)
        self._reload()

    def revoke(self, key: str, sessions: int) -> None:
        """Ends the connections of a client that is gone. Returns once so many sessions of it have ended, or after a moment.

        Until then, they hold the files that they were writing, and nobody could go on with those.
        """
        name = _fingerprint(key)
        self.drain()
        due = self._ended_sessions[name] + sessions
        self._admitted.discard(key)
        self._reload()
        deadline = time.monotonic() + _SESSIONS_END
        while self._ended_sessions[name] < due and time.monotonic() < deadline:
            time.sleep(0.02)
            self.drain()

    def drain(self) -> None:
        """Counts the sessions that have ended."""
        server = self._server
        with self.lock:
            for report, _ in server.take_reports() if server else ():
                figures = report.as_dict()
                self.moved_bytes += figures.get("moved_bytes") or 0
                self._ended_sessions[figures.get("peer_key") or ""] += 1

    def tell(self) -> None:
        """Tells the driver how far the copies are that run here."""
        with self.lock:
            running = {batch: done + running.progress().bytes for batch, (running, done) in self.running.items()}
        if running:
            self._worker.log_event(topic_of(self._session), {"running": running})

    def cancel(self, batches: Iterable[str] | None) -> None:
        """Cancels these tasks, those to come included, or all."""
        with self.lock:
            wanted = set(self.running) if batches is None else set(batches)
            self.is_ended |= batches is None
            self.cancelled |= wanted
            running = [copy for batch, (copy, _) in self.running.items() if batch in wanted]
        for copy in running:
            copy.cancel()

    def end(self) -> int:
        """Ends everything. Returns the bytes that its server has received."""
        self.cancel(None)
        if self._server:
            self._server.close()
        self.drain()
        shutil.rmtree(self._folder, ignore_errors=True)
        return self.moved_bytes

    @property
    def _keys_file(self) -> str:
        return os.path.join(self._folder, "authorized_keys")

    def _reload(self) -> None:
        if self._server and self._server.key is not None:
            self._write_keys()
            self._server.reload()

    def _write_keys(self) -> None:
        assert self._service is not None
        rights = ",write,delete" if self._service.may_delete else ",write"
        outermost = outermost_of(self._service.directories)
        paths = " ".join(f"path={self._word_for(directory)}{rights}" for directory in outermost)
        new = f"{self._keys_file}.new"
        with open(new, "w", encoding="utf-8", opener=_private) as file:
            file.writelines(f"{key} {paths}\n" for key in sorted(self._admitted))
        os.replace(new, self._keys_file)

    def _word_for(self, directory: str) -> str:
        """A path of this directory without blanks and commas: its own, or that of a link to it."""
        if _PLAIN_WORD.fullmatch(directory):
            return directory
        link = os.path.join(self._folder, hashlib.sha256(os.fsencode(directory)).hexdigest())
        if not os.path.islink(link):
            os.symlink(directory, link)
        return link


def outermost_of(directories: Iterable[str]) -> list[str]:
    """The directories that lie in none of the others."""
    found: list[str] = []
    for directory in sorted(set(directories), key=lambda path: path.rstrip("/") + "/"):
        if not found or not (directory + "/").startswith(found[-1].rstrip("/") + "/"):
            found.append(directory)
    return found


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _fingerprint(key: str) -> str:
    digest = hashlib.sha256(base64.b64decode(key.split()[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def topic_of(session: str) -> str:
    """The topic of events of this copy."""
    return f"farhaul-{session}"


_agents: dict[tuple[str, str], Agent] = {}
"""By the address of the worker, because several may live in one process, and the copy."""
_agents_lock = threading.Lock()


def agent_of(worker: Worker, session: str) -> Agent | None:
    """What this worker has for this copy. `None` once it has ended."""
    return _agents.get((worker.address, session))


def _existing(worker: Worker, session: str) -> Agent:
    agent = agent_of(worker, session)
    if agent is None:
        raise _error("TERMINATED", "this worker has ended its part of the copy, because the driver was silent", None, None)
    return agent


def _begin(worker: Worker, session: str) -> str:
    place = (worker.address, session)
    with _agents_lock:
        if place not in _agents:
            is_first = not _agents
            _agents[place] = Agent(worker, session)
            if is_first:
                threading.Thread(target=_watch, name="farhaul-dask", daemon=True).start()
        return _agents[place].public_key


def _watch() -> None:
    """Looks after all agents of this process, until there are none."""
    while True:
        time.sleep(_BEAT)
        with _agents_lock:
            if not _agents:
                return
            agents = list(_agents.items())
            for place, agent in agents:
                if agent.is_forgotten:
                    del _agents[place]
        for _, agent in agents:
            if agent.is_forgotten:
                agent.end()
            else:
                agent.drain()
                agent.tell()


# What follows is called by `client.run`, on the event loop of a worker, which must not wait.


async def begin(session: str, dask_worker: Worker) -> str:
    """Makes a key for this copy. Returns the public one."""
    return await asyncio.to_thread(_begin, dask_worker, session)


async def open_server(session: str, service: Service, keys: list[str], dask_worker: Worker) -> Served | Error:
    """Opens the server of this worker."""
    agent = _existing(dask_worker, session)
    try:
        return await asyncio.to_thread(agent.open_server, service, keys)
    except Error as error:
        return error
    except OSError as error:
        return _error("LOCAL_IO", f"cannot serve {', '.join(service.directories)}: {error}", None, None)


async def open_servers(session: str, services: dict[str, tuple[Service, list[str]]], dask_worker: Worker) -> Served | Error:
    """Opens the server of this worker: of those of many workers, the one at its address."""
    service, keys = services[dask_worker.address]
    return await open_server(session, service, keys, dask_worker)


async def admit(session: str, keys: list[str], dask_worker: Worker) -> None:
    """Lets more clients write."""
    await asyncio.to_thread(_existing(dask_worker, session).admit, keys)


async def revoke(session: str, key: str, sessions: int, dask_worker: Worker) -> None:
    """Ends the connections of a client that is gone."""
    await asyncio.to_thread(_existing(dask_worker, session).revoke, key, sessions)


async def renew(session: str, dask_worker: Worker) -> None:
    """Says that the driver is there."""
    if agent := agent_of(dask_worker, session):
        agent.renew()


async def cancel(session: str, batches: list[str] | None, dask_worker: Worker) -> None:
    """Cancels tasks of this copy, or all."""
    if agent := agent_of(dask_worker, session):
        await asyncio.to_thread(agent.cancel, batches)


async def end(session: str, dask_worker: Worker) -> int:
    """Ends this worker's part of a copy. Returns the bytes that its server has received."""
    with _agents_lock:
        agent = _agents.pop((dask_worker.address, session), None)
    return await asyncio.to_thread(agent.end) if agent else 0
