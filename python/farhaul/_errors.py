"""Exceptions of the package.

Each is an ``Error``, and so an ``OSError``. Where Python has a class for the same failure, the exception is one of those as well:
``except FileNotFoundError`` catches a missing remote file. ``code`` is the name that the command ``farhaul`` has for the failure.
"""

from __future__ import annotations

import builtins
import errno
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._farhaul import Report


class Error(OSError):
    """A failure: what failed, why, and what to do about it."""

    code: str
    """Its name, for instance ``"PEER_LOST"``. The book's page about exit codes lists all."""
    remedy: str | None
    """What to do next, if something can be done."""
    report: Report | None
    """What was done before, for a copy that had begun."""
    failures: list[tuple[str, str]]
    """Files that were not copied, at most 1000, with the reason of each."""
    taken: int | None = None
    """Bytes that were taken before, for a write of a stream."""

    def __init__(
        self,
        code: str,
        message: str,
        remedy: str | None = None,
        report: Report | None = None,
        failures: list[tuple[str, str]] | None = None,
    ) -> None:
        text = f"{message}; {remedy}" if remedy else message
        super().__init__(_ERRNO.get(code, errno.EIO), text)
        self.code = code
        self.remedy = remedy
        self.report = report
        self.failures = failures or []
        self._message = message

    def __str__(self) -> str:
        return self.strerror or ""

    def __reduce__(self) -> tuple[object, ...]:
        # A report stays in its process: a scheduler that sends the error to another one has its text and its code.
        return (type(self), (self.code, self._message, self.remedy, None, self.failures))


class NotFoundError(Error, FileNotFoundError):
    """There is no such file or directory."""


class AlreadyExistsError(Error, FileExistsError):
    """Something has the name already."""


class IsADirectoryError(Error, builtins.IsADirectoryError):
    """A directory is there, and not a file."""


class NotADirectoryError(Error, builtins.NotADirectoryError):
    """Something else is there, and not a directory."""


class PermissionDeniedError(Error, PermissionError):
    """One of the sides does not permit it."""


class ConnectTimeoutError(Error, TimeoutError):
    """Nobody answered, or nobody answered in time."""


class RefusedError(Error, ConnectionRefusedError):
    """The peer answered and refused the connection."""


class UnresolvedError(Error, socket.gaierror):
    """A host name has no address."""


class LostError(Error, ConnectionResetError):
    """The connection ended before its time."""


class IntegrityError(Error):
    """The bytes that arrived are not those that were sent. No file has them."""


class FileChangedError(Error):
    """A file changed while it was read, so that its bytes would belong to two of its versions."""


class UsageError(Error, ValueError):
    """An argument is wrong."""


class CancelledError(Error):
    """It was cancelled."""


class ControllerError(Error):
    """A congestion controller raised an exception, which is the ``__cause__``."""


class ForkedError(Error):
    """The object belongs to the parent process."""


_ERRNO: dict[str, int] = {
    "NOT_FOUND": errno.ENOENT,
    "ALREADY_EXISTS": errno.EEXIST,
    "IS_A_DIRECTORY": errno.EISDIR,
    "NOT_A_DIRECTORY": errno.ENOTDIR,
    "DIRECTORY_NOT_EMPTY": errno.ENOTEMPTY,
    "PERMISSION_DENIED": errno.EACCES,
    "ACCESS_DENIED": errno.EACCES,
    "NOT_ADMITTED": errno.EACCES,
    "HOST_KEY_UNKNOWN": errno.EACCES,
    "HOST_KEY_CHANGED": errno.EACCES,
    "NOT_PERMITTED": errno.EPERM,
    "CONNECT_TIMEOUT": errno.ETIMEDOUT,
    "UDP_BLOCKED": errno.ETIMEDOUT,
    "IDLE_TIMEOUT": errno.ETIMEDOUT,
    "TIMED_OUT": errno.ETIMEDOUT,
    "PEER_REFUSED": errno.ECONNREFUSED,
    "BUSY": errno.ECONNREFUSED,
    "PEER_LOST": errno.ECONNRESET,
    "ENDED_EARLY": errno.ECONNRESET,
    "CLOSED": errno.EBADF,
    "FINISHED": errno.EPIPE,
    "MESSAGE_TOO_LONG": errno.EMSGSIZE,
    "TOO_MANY_CONNECTIONS": errno.EAGAIN,
    "SOURCE_CHANGED": errno.EBUSY,
    "ADDRESS_IN_USE": errno.EADDRINUSE,
    "ADDRESS_UNAVAILABLE": errno.EADDRNOTAVAIL,
    "NAME_UNRESOLVED": socket.EAI_NONAME,
    "NO_ROUTE": errno.ENETUNREACH,
    "UNSUPPORTED": errno.EOPNOTSUPP,
    "USAGE": errno.EINVAL,
    "DISK_FULL": errno.ENOSPC,
    "PROTOCOL": errno.EPROTO,
    "INTERRUPTED": errno.ECANCELED,
    "HUNG_UP": errno.ECANCELED,
    "TERMINATED": errno.ECANCELED,
}

_CLASS: dict[str, type[Error]] = {
    "NOT_FOUND": NotFoundError,
    "ALREADY_EXISTS": AlreadyExistsError,
    "IS_A_DIRECTORY": IsADirectoryError,
    "NOT_A_DIRECTORY": NotADirectoryError,
    "PERMISSION_DENIED": PermissionDeniedError,
    "ACCESS_DENIED": PermissionDeniedError,
    "NOT_ADMITTED": PermissionDeniedError,
    "HOST_KEY_UNKNOWN": PermissionDeniedError,
    "HOST_KEY_CHANGED": PermissionDeniedError,
    "NOT_PERMITTED": PermissionDeniedError,
    "CONNECT_TIMEOUT": ConnectTimeoutError,
    "UDP_BLOCKED": ConnectTimeoutError,
    "IDLE_TIMEOUT": ConnectTimeoutError,
    "TIMED_OUT": ConnectTimeoutError,
    "PEER_REFUSED": RefusedError,
    "BUSY": RefusedError,
    "NAME_UNRESOLVED": UnresolvedError,
    "PEER_LOST": LostError,
    "ENDED_EARLY": LostError,
    "MESSAGE_TOO_LONG": UsageError,
    "INTEGRITY": IntegrityError,
    "SOURCE_CHANGED": FileChangedError,
    "USAGE": UsageError,
    "INTERRUPTED": CancelledError,
    "HUNG_UP": CancelledError,
    "TERMINATED": CancelledError,
    "FORKED": ForkedError,
    "IN_CALLBACK": UsageError,
    "CONTROLLER_FAILED": ControllerError,
}


OF_ONE_PLACE = frozenset(
    [
        "ACCESS_DENIED",
        "ALREADY_EXISTS",
        "FILES_FAILED",
        "IS_A_DIRECTORY",
        "NOT_A_DIRECTORY",
        "NOT_FOUND",
        "PERMISSION_DENIED",
        "UNSUPPORTED",
        "USAGE",
    ]
)
"""Failures that say something of one path. After the others, nothing more is known of its host."""


def _error(
    code: str,
    message: str,
    remedy: str | None,
    report: Report | None = None,
    failures: list[tuple[str, str]] | None = None,
) -> Error:
    """The exception for a failure of the extension module."""
    return _CLASS.get(code, Error)(code, message, remedy, report, failures)
