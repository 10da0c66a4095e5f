"""Tasks that have ended, for Dask's dashboard."""

from __future__ import annotations

from collections import deque

from ._distributed import Future

_OUTCOMES = 100_000
"""Most outcomes that stay on workers: some 30 MB on all of them."""


class Shown:
    """Keeps tasks that have ended until the copy ends. Dask forgets a task, and no longer counts it, when its last future is gone."""

    def __init__(self) -> None:
        self._tasks: deque[tuple[str, int, Future]] = deque()
        self._outcomes = 0

    def add(self, worker: str, outcomes: int, future: Future) -> None:
        """Keeps a task of this worker with so many outcomes. The oldest ones may be forgotten."""
        self._tasks.append((worker, outcomes, future))
        self._outcomes += outcomes
        while self._outcomes > _OUTCOMES:
            self._outcomes -= self._tasks.popleft()[1]

    def leave(self, worker: str) -> None:
        """Forgets the tasks of a worker that is gone, whose results Dask would make again."""
        self._tasks = deque(task for task in self._tasks if task[0] != worker)
        self._outcomes = sum(outcomes for _, outcomes, _ in self._tasks)

    def clear(self) -> None:
        """Forgets all."""
        self._tasks.clear()
        self._outcomes = 0
