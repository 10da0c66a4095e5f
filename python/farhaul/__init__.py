"""Reliable bulk data transfer over UDP for long fat networks.

| to | use |
| --- | --- |
| copy files and trees between hosts | `copy`, `copy_async` |
| serve a directory | `serve` |
| catch failures | `Error` and its subclasses |
"""

from ._copy import copy, copy_async
from ._errors import (
    AlreadyExistsError,
    CancelledError,
    ConnectTimeoutError,
    Error,
    ForkedError,
    IntegrityError,
    IsADirectoryError,
    LostError,
    NotADirectoryError,
    NotFoundError,
    PermissionDeniedError,
    RefusedError,
    UsageError,
)
from ._farhaul import Progress, Report, __version__
from ._serve import DirectoryServer, serve

__all__ = [
    "AlreadyExistsError",
    "CancelledError",
    "ConnectTimeoutError",
    "DirectoryServer",
    "Error",
    "ForkedError",
    "IntegrityError",
    "IsADirectoryError",
    "LostError",
    "NotADirectoryError",
    "NotFoundError",
    "PermissionDeniedError",
    "Progress",
    "RefusedError",
    "Report",
    "UsageError",
    "__version__",
    "copy",
    "copy_async",
    "serve",
]
