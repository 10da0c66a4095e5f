"""The workers of a copy, as its driver sees them: who is there, which keys and servers they have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .._options import ConnectionOptions
from . import _agent
from ._agent import Served, Service
from ._distributed import Client
from ._places import Worker, any_port_of, workers_at, workers_of
from ._plan import Pair
from ._settings import Settings

_OF_CONNECTIONS = set(ConnectionOptions.__annotations__) - {
    "key",
    "host_key",
    "host_key_policy",
    "authorized_keys",
    "any_client",
}
"""Options that servers take as clients do. The others are the driver's where a worker serves."""


class Cluster:
    """The workers, and what they have for this copy."""

    def __init__(self, client: Client, session: str, pairs: Sequence[Pair], settings: Settings) -> None:
        self._client = client
        self._session = session
        self._pairs = pairs
        self._settings = settings
        self._workers: dict[str, Worker] = {}
        self._found: dict[str, list[str]] = {}
        self._keys: dict[str, str] = {}
        self._served: dict[str, Served] = {}
        self._admitted: dict[str, set[str]] = {}

    def look(self) -> None:
        """Asks the scheduler which workers there are."""
        try:
            info = self._client.scheduler_info(n_workers=-1)
        except TypeError:  # Older versions tell of all.
            info = self._client.scheduler_info()
        self._workers = workers_of(info)
        self._found.clear()

    def __contains__(self, address: str) -> bool:
        return address in self._workers

    def name(self, address: str) -> str:
        """The name of a worker, for reports."""
        worker = self._workers.get(address)
        return worker.name if worker else address

    def at(self, host: str) -> list[str]:
        """The workers that the host of a place names."""
        if host not in self._found:
            self._found[host] = [worker.address for worker in workers_at(host, self._workers.values())]
        return self._found[host]

    def choose(self, host: str, load: Mapping[str, int]) -> str | None:
        """The one of them that has least to do."""
        return min(self.at(host), key=lambda address: load[address], default=None)

    def prepare_all(self) -> None:
        """Does for all pairs what `prepare` does for one, in two calls. What fails is left to that.

        A host that several workers have opens its servers one by one, as they are chosen.
        """
        pairs = [pair for pair in self._pairs if pair.source.host is not None and pair.sink.host is not None]
        sources = {address for pair in self._pairs for address in self.at(pair.runs_at)}
        sinks = {address for pair in pairs for address in self._only_at(pair.sink.host)}
        keys = self.call(_agent.begin, sources | sinks)
        self._keys.update({address: key for address, key in keys.items() if isinstance(key, str)})
        services = {sink: (self._service(sink), self._keys_to(sink)) for sink in sinks if sink in self._keys}
        for sink, served in self.call(_agent.open_servers, services, services).items():
            if isinstance(served, Served):
                self._served[sink] = served
                self._admitted[sink] = set(services[sink][1])

    def _only_at(self, host: str | None) -> list[str]:
        found = self.at(host) if host is not None else []
        return found if len(found) == 1 else []

    def _keys_to(self, sink: str) -> list[str]:
        """The keys of the workers that may send to this one."""
        worker = self._workers[sink]
        senders = {
            address
            for pair in self._pairs
            if pair.source.host is not None and pair.sink.host is not None and worker.is_at(pair.sink.host)
            for address in self.at(pair.runs_at)
        }
        return sorted(self._keys[address] for address in senders if address in self._keys)

    def prepare(self, source: str, sink: str | None) -> Served | None:
        """Makes keys at both ends, and opens the server of the sink. Nothing that is there already.

        Raises what failed on a worker, or on the path to it.
        """
        ends = {source} | ({sink} if sink is not None else set())
        if new := ends - set(self._keys):
            self._keys.update(_raised(self.call(_agent.begin, new)))
        if sink is None:
            return None
        key = self._keys[source]
        if sink not in self._served:
            keys = sorted({key, *self._keys_to(sink)})
            self._served.update(_raised(self.call(_agent.open_server, {sink}, self._service(sink), keys)))
            self._admitted[sink] = set(keys)
        elif key not in self._admitted[sink]:
            _raised(self.call(_agent.admit, {sink}, [key]))
            self._admitted[sink].add(key)
        return self._served[sink]

    def serves(self, sink: str) -> bool:
        """Whether this worker has a server that will tell what it has received."""
        return sink in self._served

    def lost(self) -> list[str]:
        """The workers that had something for this copy, and are gone."""
        return [address for address in self._keys if address not in self._workers]

    def leave(self, address: str, sessions: Mapping[str | None, int]) -> bool:
        """Forgets a worker that is gone. Sinks have so many sessions of it, which are ended. Returns whether it served."""
        key = self._keys.pop(address, None)
        for sink, admitted in self._admitted.items():
            if key in admitted and sink in self._workers:
                admitted.discard(key)
                self.call(_agent.revoke, {sink}, key, sessions.get(sink, 0))
        self._admitted.pop(address, None)
        return self._served.pop(address, None) is not None

    def cancel(self, worker: str, tasks: list[str]) -> None:
        """Cancels tasks that a worker runs, or will."""
        self.call(_agent.cancel, {worker}, tasks)

    def renew(self) -> None:
        """Says that the driver is there."""
        self.call(_agent.renew, self._keys)

    def end(self) -> int:
        """Ends everything on the workers. Returns the bytes that their servers have received."""
        answers = self.call(_agent.end, self._keys).values()
        return sum(answer for answer in answers if isinstance(answer, int))

    def call(self, function: Callable[..., Any], workers: Iterable[str], *arguments: Any) -> dict[str, Any]:
        """Calls a function of `_agent` on workers. Failures are among the results."""
        addresses = [address for address in workers if address in self._workers]
        if not addresses:
            return {}
        answers: dict[str, Any] = self._client.run(function, self._session, *arguments, workers=addresses, on_error="return")
        return answers

    def _service(self, sink: str) -> Service:
        worker = self._workers[sink]
        hosts = {pair.sink.host for pair in self._pairs if pair.sink.host is not None and worker.is_at(pair.sink.host)}
        paths = [pair.sink.path for pair in self._pairs if pair.sink.host in hosts and pair.source.host is not None]
        listens = [self._settings.listen[host] for host in sorted(hosts) if host in self._settings.listen]
        options = self._settings.options
        return Service(
            directories=tuple(sorted({path.rpartition("/")[0] or "/" for path in paths})),
            listen=listens[0] if listens else any_port_of(sink),
            options={name: value for name, value in options.items() if name in _OF_CONNECTIONS},
            may_delete=bool(options.get("delete")),
        )


def _raised(answers: dict[str, Any]) -> dict[str, Any]:
    for answer in answers.values():
        if isinstance(answer, BaseException):
            raise answer
    return answers
