"""URLs of remote files."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from ._errors import UsageError

_URL = re.compile(r"(?:(?P<user>[^@/]*)@)?(?P<host>\[[^\]/]*\]|[^:/\[\]]*)(?::(?P<port>[^/:]*))?(?P<path>/.*)?", re.DOTALL)


def parts(rest: str) -> dict[str, Any]:
    """User, host, port and path behind the ``//`` of a URL."""
    match = _URL.fullmatch(rest)
    if match is None:
        raise UsageError("USAGE", "the URL has no host", "write scheme://host:port/path, and an IPv6 address in brackets")
    found = match.groupdict()
    if found["user"] is not None and ":" in found["user"]:
        # The URL itself is not shown: it has a secret.
        raise UsageError(
            "USAGE", "a URL with a password is refused, because URLs are logged and pickled", "use keys, and leave it out"
        )
    if found["port"] and not (found["port"].isdecimal() and int(found["port"]) < 65536):
        raise UsageError("USAGE", f"'{found['port']}' is no port")
    return found


def bracketed(host: str) -> str:
    """A host in a URL. To fsspec, ``::`` joins URLs, so an IPv6 address is written out."""
    if ":" not in host:
        return host
    number, zone, interface = host.partition("%")
    return f"[{ipaddress.IPv6Address(number).exploded}{zone}{interface}]"
