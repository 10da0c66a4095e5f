"""The logger ``farhaul``: connections, and what happens to them. Nothing is logged for each packet or file."""

from __future__ import annotations

import logging

logger = logging.getLogger("farhaul")
# The program decides who hears it.
logger.addHandler(logging.NullHandler())


def pass_on(lines: list[tuple[int, str]]) -> None:
    """Logs lines with their levels."""
    for level, line in lines:
        logger.log(level, "%s", line)
