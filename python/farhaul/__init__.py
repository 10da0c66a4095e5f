"""Reliable bulk data transfer over UDP for long fat networks.

| to | use |
| --- | --- |
| copy files and trees between hosts | `copy`, `copy_async` |
| serve a directory | `serve` |
| send and receive bytes | `connect`, `listen`; for tasks: `open_connection`, `start_server` |
| send and receive messages | `MessageSocket` |
| catch failures | `Error` and its subclasses |
| control congestion by a class of your own | `farhaul.cc` |
| simulate networks; run experiments | `farhaul.sim`, `farhaul.lab` |
"""

import atexit as _atexit
import os as _os

from . import _log  # noqa: F401
from ._copy import copy, copy_async
from ._errors import (
    AlreadyExistsError,
    CancelledError,
    ConnectTimeoutError,
    ControllerError,
    Error,
    FileChangedError,
    ForkedError,
    IntegrityError,
    IsADirectoryError,
    LostError,
    NotADirectoryError,
    NotFoundError,
    PermissionDeniedError,
    RefusedError,
    UnresolvedError,
    UsageError,
)
from ._farhaul import (
    Listener,
    MessageListener,
    MessageSocket,
    Progress,
    Report,
    Stats,
    Stream,
    __version__,
    _after_fork,
    _before_fork,
    _begin_child,
    _end,
)
from ._options import ConnectionOptions, CopyOptions, ServeOptions, SshOptions
from ._serve import DirectoryServer, serve
from ._streams import (
    StreamReader,
    StreamServer,
    StreamWriter,
    connect,
    listen,
    open_connection,
    start_server,
)

__all__ = [
    "AlreadyExistsError",
    "CancelledError",
    "ConnectTimeoutError",
    "ConnectionOptions",
    "ControllerError",
    "CopyOptions",
    "DirectoryServer",
    "Error",
    "FileChangedError",
    "ForkedError",
    "IntegrityError",
    "IsADirectoryError",
    "Listener",
    "LostError",
    "MessageListener",
    "MessageSocket",
    "NotADirectoryError",
    "NotFoundError",
    "PermissionDeniedError",
    "Progress",
    "RefusedError",
    "Report",
    "ServeOptions",
    "SshOptions",
    "Stats",
    "Stream",
    "StreamReader",
    "StreamServer",
    "StreamWriter",
    "UnresolvedError",
    "UsageError",
    "__version__",
    "connect",
    "copy",
    "copy_async",
    "listen",
    "open_connection",
    "serve",
    "start_server",
]

# A thread that comes back to the interpreter behind its end would abort the process. Registered first, it runs last.
_atexit.register(_end)
_os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
_os.register_at_fork(after_in_child=_begin_child)
