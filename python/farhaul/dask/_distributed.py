"""What this package uses of Dask: public methods of `distributed`, most of which have no types of their own."""

from __future__ import annotations

import importlib
from typing import Any, Protocol


class Future(Protocol):
    """A task that was submitted."""

    @property
    def status(self) -> Any:
        """``pending``, ``finished``, ``error``, ``cancelled`` or ``lost``."""

    def add_done_callback(self, *args: Any, **kwargs: Any) -> Any: ...
    def cancel(self, *args: Any, **kwargs: Any) -> Any: ...
    def done(self, *args: Any, **kwargs: Any) -> Any: ...
    def exception(self, *args: Any, **kwargs: Any) -> Any: ...
    def result(self, *args: Any, **kwargs: Any) -> Any: ...


class Client(Protocol):
    """A `distributed.Client` that is not asynchronous."""

    @property
    def asynchronous(self) -> Any: ...
    def run(self, *args: Any, **kwargs: Any) -> Any: ...
    def scheduler_info(self, *args: Any, **kwargs: Any) -> Any: ...
    def submit(self, *args: Any, **kwargs: Any) -> Any: ...
    def subscribe_topic(self, *args: Any, **kwargs: Any) -> Any: ...
    def unsubscribe_topic(self, *args: Any, **kwargs: Any) -> Any: ...


class Worker(Protocol):
    """A `distributed.Worker`, as functions that `Client.run` calls have it."""

    @property
    def address(self) -> Any: ...
    def log_event(self, *args: Any, **kwargs: Any) -> Any: ...


def current_client() -> Client:
    """The client that the program made last."""
    client: Client = importlib.import_module("distributed").get_client()
    return client


def this_worker() -> Worker:
    """The worker that runs the task that calls this."""
    worker: Worker = importlib.import_module("distributed").get_worker()
    return worker
