"""Processes: what a child may use."""

import multiprocessing
import os
import traceback

import pytest

import farhaul


def in_child(work):
    """Runs `work` in a forked child, and returns the words that it returns."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            os.write(write, str(work()).encode())
        except BaseException:
            os.write(write, traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        words = pipe.read().decode()
    os.waitpid(child, 0)
    return words


def test_a_child_gets_a_clear_error_and_the_parent_goes_on(pair):
    near, far = pair

    def use():
        try:
            near.write(b"from the child")
        except farhaul.ForkedError as error:
            return f"{error.code}: {error}"

    said = in_child(use)
    assert said.startswith("FORKED: ") and "spawn" in said
    near.write(b"from the parent")
    assert far.read(100) == b"from the parent"


def test_a_child_opens_connections_of_its_own(server, root):
    (root / "x").write_text("of the server")
    url = f"{server.url}x"
    farhaul.copy(url, root / "before")

    def copy():
        return farhaul.copy(url, root / "after").files

    assert in_child(copy) == "1" and (root / "after").read_text() == "of the server"


def test_a_child_that_ends_does_not_end_what_it_inherited(pair):
    near, far = pair

    def drop():
        nonlocal near, far
        del near, far
        return "dropped"

    assert in_child(drop) == "dropped"
    near.write(b"still here")
    assert far.read(100) == b"still here"


def copy_in_child(url, target):
    farhaul.copy(url, target)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_of_multiprocessing_copy(server, root, method):
    (root / "x").write_text("of the server")
    child = multiprocessing.get_context(method).Process(target=copy_in_child, args=(f"{server.url}x", str(root / "after")))
    child.start()
    child.join(30)
    assert child.exitcode == 0 and (root / "after").read_text() == "of the server"
