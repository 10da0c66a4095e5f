"""Scenarios of the lab as TOML."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def as_toml(scenario: Mapping[str, Any]) -> str:
    """A scenario that is given as dictionaries and lists. A key without value is left out."""
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in scenario.items() if value is not None)


def _key(key: str) -> str:
    return json.dumps(str(key), ensure_ascii=False)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = (f"{_key(key)} = {_value(inner)}" for key, inner in value.items() if inner is not None)
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(inner) for inner in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        # The strings of JSON are strings of TOML but for this character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    raise TypeError(f"{value!r} is no value of a scenario: use text, numbers, booleans, lists and dictionaries")


def seconds(value: float | str | None) -> str | None:
    """A time: a number of seconds, or words such as ``20ms``."""
    return value if value is None or isinstance(value, str) else f"{round(value * 1e9)}ns"


def rate(value: float | str | None) -> str | None:
    """A rate: a number of bits per second, or words such as ``100mbit``."""
    return value if value is None or isinstance(value, str) else f"{round(value)}bit"
