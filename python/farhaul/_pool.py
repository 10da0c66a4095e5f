"""One connection to each host, for all file systems of this process."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from typing import Any

from ._farhaul import RemoteFiles

_lock = threading.Lock()
_shared: dict[tuple[int, str, str], RemoteFiles] = {}


def shared_files(address: str, options: dict[str, Any]) -> RemoteFiles:
    """The files of the host at ``address``. The first request connects. A child process gets a connection of its own."""
    key = (os.getpid(), address, repr(sorted(options.items())))
    with _lock:
        files = _shared.get(key)
        if files is None:
            files = RemoteFiles(address, **options)
            # Those of a parent process can never be used here.
            for other in [other for other in _shared if other[0] != key[0]]:
                del _shared[other]
            _shared[key] = files
        return files


def close_all() -> None:
    """Ends the connections of this process, once every request has its answer."""
    with _lock:
        mine = [files for (process, _, _), files in _shared.items() if process == os.getpid()]
        _shared.clear()
    for files in mine:
        # A server that left before needs no word.
        with contextlib.suppress(OSError):
            files.close()


atexit.register(close_all)
# A lock that a thread of the parent holds at a fork would stay locked in the child for ever.
os.register_at_fork(after_in_child=lambda: globals().__setitem__("_lock", threading.Lock()))
