"""Packages that only some users need."""

from __future__ import annotations

import importlib
from typing import Any


def extra(module: str, name: str) -> Any:
    """The module of another package, which the extra ``name`` installs as well. The name of this package may be anybody's on an index."""
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        package = module.split(".", 1)[0]
        raise ImportError(
            f"this needs {package}, as the extra {name!r} does: pip install {package}", name=missing.name
        ) from missing
