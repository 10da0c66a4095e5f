"""Copies of files and trees between hosts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Unpack

from ._described import with_options
from ._farhaul import Progress, Report, RunningCopy
from ._options import CopyOptions, Path

_INTERVAL = 0.1
"""Seconds between two calls of a progress function."""


@with_options(CopyOptions)
def copy(
    src: Path | Sequence[Path],
    dst: Path,
    *,
    progress: Callable[[Progress], object] | None = None,
    **options: Unpack[CopyOptions],
) -> Report:
    """Copies files and trees, verified by their digests, and returns what was done.

    A place is a path of this host, ``host:path`` over SSH, or ``udt://host:port/path`` below the root of a server. A ``Path`` of
    `pathlib` is always of this host. `CopyOptions` lists the keyword arguments.

    ``progress`` is called every 100 ms on the calling thread, and once at the end. An exception that it raises cancels the copy and
    reaches the caller. So does Ctrl-C. Files have their names only once they are whole, so neither leaves wrong bytes.

    Raises `Error`. Its ``report`` tells what was done before.
    """
    running = RunningCopy(src, dst, **options)
    try:
        while (report := running.wait(_INTERVAL if progress else None)) is None:
            if progress:
                progress(running.progress())
    except BaseException:
        running.cancel()
        raise
    if progress:
        progress(running.progress())
    return report


@with_options(CopyOptions)
async def copy_async(
    src: Path | Sequence[Path],
    dst: Path,
    *,
    progress: Callable[[Progress], object] | None = None,
    **options: Unpack[CopyOptions],
) -> Report:
    """`copy` for tasks. To cancel the task cancels the copy."""
    running = RunningCopy(src, dst, **options)
    result = asyncio.ensure_future(running.result())
    try:
        while not (await asyncio.wait({result}, timeout=_INTERVAL if progress else None))[0]:
            if progress:
                progress(running.progress())
    except BaseException:
        result.cancel()
        await asyncio.get_running_loop().run_in_executor(None, running.cancel)
        raise
    report = result.result()
    if progress:
        progress(running.progress())
    return report
