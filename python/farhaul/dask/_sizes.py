"""The sizes of files, as the workers of their sources see them."""

from __future__ import annotations

import queue
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from . import _task
from ._cluster import Cluster
from ._distributed import Client, Future
from ._plan import Pair

_PATHS = 5000
"""Paths in one task."""
_LOOK = 0.5
"""Seconds between two looks at which workers there are."""


def sizes(client: Client, cluster: Cluster, pairs: Iterable[Pair], is_cancelled: Callable[[], bool]) -> dict[int, int]:
    """The sizes of files by the numbers of their pairs. Of trees, and of sources that do not answer, nothing is known."""
    by_host: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        if pair.source.host is not None:
            by_host[pair.source.host].append(pair)
    session = uuid.uuid4().hex
    ended: queue.SimpleQueue[None] = queue.SimpleQueue()
    asked: list[tuple[str, Sequence[Pair], Future]] = []
    for host, of_host in by_host.items():
        worker = cluster.choose(host, Counter(address for address, _, _ in asked))
        if worker is None:
            continue
        for first in range(0, len(of_host), _PATHS):
            some = of_host[first : first + _PATHS]
            future: Future = client.submit(
                _task.measure,
                [pair.source.path for pair in some],
                key=f"farhaul-sizes-{len(asked) + 1}_{host.replace(' ', '_')}-{session}",
                workers=[worker],
                priority=100,
                pure=False,
            )
            future.add_done_callback(lambda _: ended.put(None))
            asked.append((worker, some, future))
    while any(not future.done() and worker in cluster for worker, _, future in asked) and not is_cancelled():
        try:
            ended.get(timeout=_LOOK)
        except queue.Empty:
            cluster.look()
    found: dict[int, int] = {}
    for _, of_task, future in asked:
        if future.status == "finished":
            told = zip(of_task, future.result(), strict=True)
            found.update({pair.index: size for pair, size in told if size is not None})
        else:
            future.cancel()
    return found
