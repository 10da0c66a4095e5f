"""Which pairs one task copies.

A task of Dask costs a millisecond of its scheduler, a connection some round trips. A task that is repeated repeats what it has. So
the pairs of one source and one sink are joined until they are some seconds of work, and a large file is a task of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .._errors import UsageError
from ._places import End, Place

BATCH_BYTES = 256 << 20
"""Bytes of one task: two seconds at 1 Gbit/s."""
BATCH_FILES = 1000
"""Files of one task: their names stay far below the size of a message of Dask."""


@dataclass(frozen=True)
class Pair:
    """A file, or a tree, and where it goes."""

    index: int
    source: Place
    sink: Place

    @property
    def runs_at(self) -> str:
        """The host whose worker copies it: the source's, which pushes. The sink's, if a server outside has the source."""
        host = self.source.host if self.source.host is not None else self.sink.host
        assert host is not None, "read_pairs refuses pairs without a worker"
        return host


@dataclass(frozen=True)
class Batch:
    """The pairs of one task, all of one source and one sink."""

    pairs: tuple[Pair, ...]
    bytes: int

    @property
    def runs_at(self) -> str:
        return self.pairs[0].runs_at

    @property
    def serves_at(self) -> str | None:
        """The host whose worker serves the files. `None` if a server outside does."""
        first = self.pairs[0]
        return first.sink.host if first.source.host is not None else None

    @property
    def route(self) -> str:
        first = self.pairs[0]
        return f"{first.source.name} to {first.sink.name}"


def read_pairs(pairs: Iterable[tuple[End, End]] | Mapping[End, End]) -> list[Pair]:
    """Reads pairs.

    Raises `UsageError` for one that no worker can copy, and for two with one sink.
    """
    items = pairs.items() if isinstance(pairs, Mapping) else pairs
    read: list[Pair] = []
    taken: dict[Place, Place] = {}
    for index, (source, sink) in enumerate(items):
        pair = Pair(index, Place.read(source), Place.read(sink))
        if pair.source.host is None and pair.sink.host is None:
            message = f"{pair.source} to {pair.sink}: one of the ends must be a path of a worker"
            raise UsageError("USAGE", message)
        if pair.sink in taken:
            raise UsageError("USAGE", f"{taken[pair.sink]} and {pair.source} have one sink, {pair.sink}")
        taken[pair.sink] = pair.source
        read.append(pair)
    return read


def batches(pairs: Iterable[Pair], sizes: Mapping[int, int], batch_bytes: int = BATCH_BYTES) -> list[Batch]:
    """Joins pairs to tasks. Pairs without a known size count as nothing.

    The tasks of one source go to its sinks in turn, each source beginning with another one, so that no sink has all of them at first.
    """
    routes: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in pairs:
        routes[str(pair.source.name), str(pair.sink.name)].append(pair)
    joined = {route: list(_joined(of_route, sizes, batch_bytes)) for route, of_route in routes.items()}
    sources = sorted({source for source, _ in joined})
    sinks = sorted({sink for _, sink in joined})
    order: list[Batch] = []
    rounds = max((len(of_route) for of_route in joined.values()), default=0)
    for number in range(rounds):
        for shift in range(len(sinks)):
            for offset, source in enumerate(sources):
                of_route = joined.get((source, sinks[(offset + shift) % len(sinks)]), [])
                order.extend(of_route[number : number + 1])
    return order


def _joined(pairs: Iterable[Pair], sizes: Mapping[int, int], batch_bytes: int) -> Iterable[Batch]:
    waiting: list[Pair] = []
    total = 0
    for pair in pairs:
        size = sizes.get(pair.index, 0)
        if waiting and (total + size > batch_bytes or len(waiting) == BATCH_FILES):
            yield Batch(tuple(waiting), total)
            waiting, total = [], 0
        waiting.append(pair)
        total += size
    if waiting:
        yield Batch(tuple(waiting), total)
