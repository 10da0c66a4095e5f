"""How pairs are copied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ._plan import BATCH_BYTES


@dataclass(frozen=True)
class Settings:
    """The arguments of `copy`, with its meaning of each."""

    retries: int = 3
    patience: float = 120.0
    per_sink: int = 16
    batch_bytes: int = BATCH_BYTES
    resources: Mapping[str, float] = field(default_factory=dict)
    listen: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0
    dry_run: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    """Those of `farhaul.copy`."""
