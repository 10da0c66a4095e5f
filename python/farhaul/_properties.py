"""Properties of files that were asked for a moment ago.

pyarrow and others ask for the same file three or four times before they read it, and each time costs a round trip.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_LIFE = 1.0
"""Seconds. The cache of sshfs holds for 20, that of NFS for 3 to 60."""
_MOST = 1024
"""Files."""


class RecentProperties:
    """What a server has said of files within the last second. Changes that are made here are seen at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, tuple[float, dict[str, Any]]] = {}
        # Counts the changes. An answer to a request from before a change is out of date.
        self._changes = 0

    @property
    def changes(self) -> int:
        """To be read before a request, for `remember`."""
        return self._changes

    def get(self, path: str) -> dict[str, Any] | None:
        known = self._known.get(path)
        return dict(known[1]) if known is not None and self._clock() - known[0] < _LIFE else None

    def remember(self, path: str, entry: dict[str, Any], changes: int) -> None:
        if changes != self._changes:
            return
        self._known.pop(path, None)
        self._known[path] = self._clock(), dict(entry)
        if len(self._known) > _MOST:
            self._known.pop(next(iter(self._known)), None)

    def forget(self) -> None:
        self._changes += 1
        self._known.clear()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Surrounds a request that changes files."""
        self.forget()
        try:
            yield
        finally:
            self.forget()
