"""Listings of trees: few requests, and what they leave out."""

import asyncio
import os
import subprocess
import sys

import pytest

import farhaul

fsspec = pytest.importorskip("fsspec")

from remotes import Counted, Older

from farhaul.fsspec import FarhaulFileSystem


@pytest.fixture
def fs(server):
    host, port = server.address.split(":")
    return FarhaulFileSystem(host, int(port))


@pytest.fixture
def tree(root):
    """Some directories, files at each level, and links to a file, a directory, the one above and one outside."""
    for outer in range(30):
        for inner in range(3):
            folder = root / f"t/d{outer:02}/e{inner}"
            folder.mkdir(parents=True)
            (folder / "x").write_bytes(b"12345")
        (root / f"t/d{outer:02}/f").write_bytes(b"123")
    (root / "t/empty").mkdir()
    (root / "t/a").symlink_to("d00/f")
    (root / "t/d01/linked").symlink_to("e1")
    (root / "t/d02/up").symlink_to("..")
    (root.parent / "outside").mkdir()
    (root.parent / "outside/secret").touch()
    (root / "t/d03/out").symlink_to(root.parent / "outside")
    return root / "t"


def walked(tree, **arguments):
    """What the standard library finds, as paths below the root of the server."""
    for folder, dirs, files in os.walk(tree, **arguments):
        yield f"/t{folder.removeprefix(str(tree))}", sorted(dirs), sorted(files)


LISTINGS = [
    lambda fs: fs.find("/t"),
    lambda fs: fs.find("/t", maxdepth=2, withdirs=True, detail=True),
    lambda fs: fs.du("/t"),
    lambda fs: fs.du("/t", total=False),
    lambda fs: fs.glob("/t/**/x"),
    lambda fs: fs.glob("/t/d0*/e1/*"),
    lambda fs: fs.expand_path("/t", recursive=True),
    lambda fs: list(fs.walk("/t")),
    lambda fs: list(fs.walk("/t", topdown=False, detail=True)),
]


@pytest.mark.parametrize("listing", LISTINGS)
def test_a_tree_is_listed_by_few_requests_and_by_an_older_server_all_the_same(fs, tree, monkeypatch, listing):
    remote = Counted(fs._remote())
    monkeypatch.setattr(fs, "_remote", lambda: remote)
    found = listing(fs)
    # Beside the tree, the kind of the place, and the links.
    assert remote.calls.pop("list_tree") == 1 and remote.calls.pop("stat", 0) <= 10 and not remote.calls
    fs.invalidate_cache()
    monkeypatch.setattr(fs, "_remote", lambda: Older(remote))
    assert listing(fs) == found
    assert remote.calls["list"] >= 1


@pytest.mark.parametrize("kind", [lambda remote: remote, Older])
def test_a_walk_is_that_of_the_standard_library(fs, tree, monkeypatch, kind):
    remote = kind(fs._remote())
    monkeypatch.setattr(fs, "_remote", lambda: remote)
    # A link that leads out of the root is one to fsspec, and to the standard library a directory.
    found = [(path, sorted(dirs), sorted(files)) for path, dirs, files in fs.walk("/t") if path != "/t/d03"]
    assert found == sorted(step for step in walked(tree) if step[0] != "/t/d03")
    up = [path for path, _, _ in fs.walk("/t", topdown=False)]
    assert set(up) == {path for path, _, _ in walked(tree)} and up[-1] == "/t" and up.index("/t/d07/e1") < up.index("/t/d07")
    assert not any("secret" in path for path in fs.find("/t"))


def test_a_walk_leaves_out_what_its_caller_takes_away(fs, tree):
    seen = []
    for path, dirs, _ in fs.walk("/t"):
        seen.append(path)
        if path == "/t":
            dirs[:] = ["d05", "empty"]
    assert seen == ["/t", "/t/d05", "/t/d05/e0", "/t/d05/e1", "/t/d05/e2", "/t/empty"]


def test_a_tree_of_more_than_a_page_is_whole_and_a_walk_may_end_early(fs, root):
    # Names of 200 bytes: 5 MB.
    for folder in range(5):
        (root / f"{folder}").mkdir()
        for index in range(4000):
            (root / f"{folder}/{'n' * 200}{index}").touch()
    remote = Counted(fs._remote())
    fs._remote = lambda: remote
    assert len(fs.find("/")) == 20_000 and remote.calls["list_tree"] == 2
    steps = fs.walk("/")
    assert next(steps) == ("/", ["0", "1", "2", "3", "4"], [])
    steps.close()


def test_a_file_and_nothing_are_no_trees(fs, tree):
    assert fs.find("/t/d00/f") == ["/t/d00/f"] and fs.du("/t/d00/f") == 3
    assert fs.find("/none") == [] and list(fs.walk("/none")) == []
    with pytest.raises(FileNotFoundError):
        list(fs.walk("/none", on_error="raise"))
    with pytest.raises(ValueError, match="maxdepth"):
        fs.find("/t", maxdepth=0)


def test_a_directory_that_cannot_be_read_is_named_and_the_others_are_listed(fs, tree):
    # No path that a request can have leads to the last one.
    at = os.open(tree / "d04", os.O_DIRECTORY)
    for _ in range(17):
        os.mkdir("n" * 250, dir_fd=at)
        below = os.open("n" * 250, os.O_DIRECTORY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    told = []
    found = [path for path, _, _ in fs.walk("/t", on_error=told.append)]
    assert found[-1] == "/t/empty" and len(told) == 1
    assert isinstance(told[0], farhaul.Error) and f"d04/{'n' * 250}" in str(told[0]) and "longer than 4096" in str(told[0])
    with pytest.raises(farhaul.Error, match="longer than 4096"):
        fs.find("/t")


def test_tasks_walk_and_may_stop(fs, tree):
    async def first_two():
        own = FarhaulFileSystem(fs.host, fs.port, asynchronous=True, skip_instance_cache=True)
        found = []
        async for path, _, _ in own._walk("/t"):
            found.append(path)
            if len(found) == 2:
                return found

    assert asyncio.run(first_two()) == ["/t", "/t/d00"]


def test_a_walk_that_nobody_ends_keeps_no_program_from_its_end(server, tree):
    host, port = server.address.split(":")
    program = f"""
from farhaul.fsspec import FarhaulFileSystem
walk = FarhaulFileSystem({host!r}, {port}).walk("/t")
print(next(walk)[0])
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "/t\n", "")
