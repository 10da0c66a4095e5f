"""Listings of trees, for the walks of the file system."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._errors import Error, NotADirectoryError, NotFoundError

if TYPE_CHECKING:
    from .fsspec import FarhaulFileSystem

ALL_LEVELS = (1 << 32) - 1
"""More levels of directories than there are."""
_AT_ONCE = 16
"""Directories that an older server is asked for at a time."""


@dataclass
class Directory:
    """A directory of a tree, with its entries, and why it cannot be read."""

    path: str
    entries: list[dict[str, Any]]
    error: OSError | None = None


async def directories(fs: FarhaulFileSystem, path: str, depth: int) -> AsyncIterator[Directory]:
    """The directory at a path and those below it, at most ``depth`` levels, each before those in it.

    One request lists some ten thousand entries. Links to directories are entries, and are not followed.
    """
    remote, place = fs._remote(), fs._service_path(path)
    cursor: tuple[bytes, bytes] | None = None
    last: Directory | None = None
    while last is None or cursor is not None:
        changes = fs._recent.changes
        try:
            page = await remote.list_tree(place, depth, cursor)
        except OSError as error:
            if last is not None:
                raise
            yield await _not_listed(fs, path, error)
            return
        if page is None:
            async for directory in _one_by_one(fs, path, depth):
                yield directory
            return
        parts, cursor = page
        found = [
            Directory(_joined(path, below), fs._entries(_joined(path, below), listed), error) for below, listed, error in parts
        ]
        await fs._follow(found, changes)
        for directory in found:
            if last is not None and last.path == directory.path:
                # The page before ended within it.
                last.entries += directory.entries
                last.error = directory.error
                continue
            if last is not None:
                yield last
            last = directory
        last = last or Directory(path, [])
    yield last


async def _one_by_one(fs: FarhaulFileSystem, path: str, depth: int) -> AsyncIterator[Directory]:
    """The same by requests for one directory each, some of them at a time."""
    left = [(path, 1)]
    asked: dict[str, asyncio.Task[list[dict[str, Any]]]] = {}
    try:
        while left:
            for folder, _ in left[-_AT_ONCE:]:
                if folder not in asked:
                    asked[folder] = asyncio.ensure_future(fs._ls(folder))
            folder, level = left.pop()
            try:
                directory = Directory(folder, await asked.pop(folder))
            except OSError as error:
                directory = Directory(folder, [], error)
            yield directory
            below = [entry["name"] for entry in directory.entries if is_directory(entry) and entry["name"] != folder]
            if level < depth:
                left += [(name, level + 1) for name in reversed(below)]
    finally:
        for task in asked.values():
            task.cancel()


async def _not_listed(fs: FarhaulFileSystem, path: str, error: OSError) -> Directory:
    """What cannot be listed may be a file."""
    if isinstance(error, NotADirectoryError):
        try:
            return Directory(path, [await fs._info_now(path)])
        except Error as other:
            error = other
    return Directory(path, [], error)


def is_directory(entry: dict[str, Any]) -> bool:
    """Whether an entry is a directory itself, and no link to one."""
    return entry["type"] == "directory" and not entry.get("islink")


def is_missing(error: OSError) -> bool:
    """Whether a directory has gone, so that a walk leaves it out."""
    return isinstance(error, (NotFoundError, NotADirectoryError))


def is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def _joined(path: str, below: bytes) -> str:
    return f"{path.rstrip('/')}/{os.fsdecode(below)}" if below else path
