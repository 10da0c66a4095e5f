"""Files that are written through wrappers, which drop the file that they were given and do not close it."""

import asyncio
import bz2
import gc
import gzip
import io
import logging
import lzma
import pickle
import subprocess
import sys
import tarfile
import threading
import zipfile

import pytest

import farhaul

fsspec = pytest.importorskip("fsspec")

from farhaul.fsspec import FarhaulFileSystem

CONTENT = b"content " * 1000


@pytest.fixture
def fs(server):
    host, port = server.address.split(":")
    return FarhaulFileSystem(host, int(port))


def compressed(compression):
    def write(fs, path, fails):
        with fs.open(path, "wb", compression=compression) as file:
            file.write(CONTENT)
            assert not fails

    return write


def gzip_file(fs, path, fails):
    with gzip.GzipFile(fileobj=fs.open(path, "wb"), mode="wb") as file:
        file.write(CONTENT)
        assert not fails


def bz2_file(fs, path, fails):
    with bz2.open(fs.open(path, "wb"), "wt") as file:
        file.write(CONTENT.decode())
        assert not fails


def zip_file(fs, path, fails):
    with zipfile.ZipFile(fs.open(path, "wb"), "w") as archive:
        archive.writestr("x", CONTENT)
        assert not fails


def tar_file(fs, path, fails):
    with tarfile.open(fileobj=fs.open(path, "wb"), mode="w") as archive:
        entry = tarfile.TarInfo("x")
        entry.size = len(CONTENT)
        archive.addfile(entry, io.BytesIO(CONTENT))
    assert not fails


def pickled(fs, path, fails):
    # What cannot be pickled comes behind what can.
    pickle.dump([CONTENT, (lambda: None) if fails else None], fs.open(path, "wb"))


def array(fs, path, fails):
    numpy = pytest.importorskip("numpy")
    numpy.save(fs.open(path, "wb"), numpy.frombuffer(CONTENT, dtype="u1"))


def text(fs, path, fails):
    io.TextIOWrapper(fs.open(path, "wb")).write(CONTENT.decode())


def log(fs, path, fails):
    handler = logging.StreamHandler(io.TextIOWrapper(fs.open(path, "wb")))
    handler.emit(logging.makeLogRecord({"msg": CONTENT.decode()}))


def unzipped(content):
    return zipfile.ZipFile(io.BytesIO(content)).read("x")


def untarred(content):
    return tarfile.open(fileobj=io.BytesIO(content)).extractfile("x").read()


WRAPPERS = {
    "compression gzip": (compressed("gzip"), gzip.decompress),
    "compression bz2": (compressed("bz2"), bz2.decompress),
    "compression xz": (compressed("xz"), lzma.decompress),
    "GzipFile": (gzip_file, gzip.decompress),
    "bz2.open as text": (bz2_file, bz2.decompress),
    "ZipFile": (zip_file, unzipped),
    "tarfile": (tar_file, untarred),
    "pickle.dump": (pickled, pickle.loads),
    "numpy.save": (array, lambda content: content),
    "TextIOWrapper": (text, lambda content: content),
    "logging": (log, lambda content: content),
}


# Python warns of the local files.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", WRAPPERS)
def test_a_file_that_a_wrapper_drops_is_there_as_on_a_local_disk(fs, root, tmp_path, name):
    write, read = WRAPPERS[name]
    write(fs, "/d/x", False)
    (tmp_path / "local").mkdir()
    write(fsspec.filesystem("file"), f"{tmp_path}/local/x", False)
    gc.collect()
    assert read((root / "d/x").read_bytes()) == read((tmp_path / "local/x").read_bytes())


@pytest.mark.parametrize(
    "name", ["compression gzip", "compression bz2", "compression xz", "GzipFile", "bz2.open as text", "ZipFile", "pickle.dump"]
)
def test_a_file_that_a_wrapper_drops_under_an_exception_is_given_up_with_a_warning(fs, root, name):
    write, _ = WRAPPERS[name]
    with (
        pytest.warns(ResourceWarning, match="/x was not closed"),
        pytest.raises((AssertionError, pickle.PicklingError, AttributeError)),
    ):
        write(fs, "/x", True)
    gc.collect()
    assert not list(root.iterdir())


def test_an_exception_that_is_handled_already_ends_no_file(fs, root):
    try:
        raise LookupError
    except LookupError:
        gzip_file(fs, "/x", False)
    assert gzip.decompress((root / "x").read_bytes()) == CONTENT


def test_another_exception_at_the_place_of_one_that_was_handled_ends_its_file(fs, root):
    try:
        raise LookupError
    except LookupError as error:
        place = id(error)
        file = fs.open("/x", "wb")
    file.write(CONTENT)
    others = []
    while id(others[-1] if others else None) != place:
        others.append(LookupError())
    try:
        raise others.pop()
    except LookupError:
        with pytest.warns(ResourceWarning, match="/x was not closed"):
            del file
    assert not list(root.iterdir())


def test_a_file_of_a_transaction_that_a_wrapper_leaves_open_is_whole_at_its_end(fs, root):
    with fs.transaction:
        gzip_file(fs, "/x", False)
        assert not fs.exists("/x")
    assert gzip.decompress((root / "x").read_bytes()) == CONTENT
    with pytest.raises(LookupError), fs.transaction:
        gzip_file(fs, "/y", False)
        raise LookupError
    assert [path.name for path in root.iterdir()] == ["x"]


def test_a_file_that_waits_for_its_commit_in_vain_is_given_up_with_a_warning(fs, root):
    file = fs._open("/x", "wb", autocommit=False)
    file.write(CONTENT)
    with pytest.warns(ResourceWarning, match="nobody can commit it"):
        del file
    assert not list(root.iterdir())


class Cycle:
    def __init__(self, file):
        self.me, self.file = self, file


@pytest.mark.parametrize(
    ("wrap", "read"),
    [
        (lambda file: file, lambda content: content),
        (io.TextIOWrapper, lambda content: content),
        (lambda file: gzip.GzipFile(fileobj=file, mode="wb"), gzip.decompress),
        (lambda file: bz2.BZ2File(file, "wb"), bz2.decompress),
    ],
)
def test_the_end_of_a_cycle_of_references_is_the_end_of_its_files(fs, root, wrap, read):
    cycle = Cycle(wrap(fs.open("/x", "wb")))
    cycle.file.write(CONTENT.decode() if isinstance(cycle.file, io.TextIOWrapper) else CONTENT)
    del cycle
    gc.collect()
    assert read((root / "x").read_bytes()) == CONTENT


def test_a_cycle_may_be_found_by_the_thread_of_the_event_loop(fs, root):
    cycle = Cycle(fs.open("/x", "wb"))
    cycle.file.write(CONTENT)
    del cycle

    async def collect():
        gc.collect()

    fs._sync(collect)
    while not fs.exists("/x"):
        pass
    assert (root / "x").read_bytes() == CONTENT


EXIT = """
import gzip, io, sys, zipfile
from farhaul.fsspec import FarhaulFileSystem
fs = FarhaulFileSystem(sys.argv[1], int(sys.argv[2]))
plain = fs.open("/plain", "wb")
plain.write(b"content")
text = fs.open("/text", "w")
text.write("content")
packed = gzip.GzipFile(fileobj=fs.open("/packed", "wb"), mode="wb")
packed.write(b"content")
archive = zipfile.ZipFile(fs.open("/archive", "wb"), "w")
archive.writestr("x", b"content")
"""


def run(server, last, *options):
    arguments = [sys.executable, *options, "-c", EXIT + last, *server.address.split(":")]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(("last", "code"), [("", 0), ("sys.exit(7)", 7)])
def test_files_that_nobody_closed_are_there_after_the_end_of_the_program(server, root, last, code):
    ended = run(server, last)
    assert (ended.returncode, ended.stderr) == (code, "")
    assert (root / "plain").read_bytes() == (root / "text").read_bytes() == b"content"
    assert gzip.decompress((root / "packed").read_bytes()) == unzipped((root / "archive").read_bytes()) == b"content"


def test_an_exception_that_ends_the_program_gives_its_files_up(server, root):
    ended = run(server, "raise LookupError", "-Wdefault::ResourceWarning")
    assert ended.returncode == 1 and ended.stderr.count("was not closed, and is given up") == 4, ended.stderr
    assert not list(root.iterdir())


def test_an_exception_that_came_before_a_file_was_opened_does_not_end_it(server, root):
    # As in an interactive session.
    session = "sys.last_value = LookupError()\nlater = fs.open('/later', 'wb')\nlater.write(b'content')"
    ended = run(server, session, "-Wdefault::ResourceWarning")
    assert ended.returncode == 0 and ended.stderr.count("was not closed, and is given up") == 4, ended.stderr
    assert [path.name for path in root.iterdir()] == ["later"] and (root / "later").read_bytes() == b"content"


def test_a_child_drops_a_large_file_of_its_parent_without_a_word(server, root):
    drop = """
large = fs.open("/large", "wb")
large.write(bytes(5_000_000))
import os
if not os.fork():
    del large
    sys.exit(0)
os.wait()
"""
    ended = run(server, drop, "-Wignore")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (root / "large").read_bytes() == bytes(5_000_000)


class SlowWriter:
    def __init__(self):
        self.happened = []
        self.has_ended = threading.Event()

    async def write(self, content):
        try:
            with memoryview(content):
                await asyncio.sleep(100)
        finally:
            self.has_ended.set()

    async def finish(self):
        self.happened.append("finished")

    def discard(self):
        self.happened.append("discarded")


def test_ctrl_c_during_an_upload_gives_the_file_up(fs, interrupt):
    file, writer = fs.open("/x", "wb"), SlowWriter()
    file._initiate_upload = lambda: setattr(file, "_writer", writer)
    file.write(CONTENT)
    interrupt(0.3)
    with pytest.raises(KeyboardInterrupt):
        file.close()
    assert writer.has_ended.wait(20) and writer.happened == ["discarded"]
    file.discard()


def test_a_child_does_not_end_the_files_of_its_parent(server, root):
    ended = run(server, "import os\nif not os.fork(): sys.exit(0)\nos.wait()\nprint(fs.ls('/'))", "-Wignore")
    assert ended.stdout == "[]\n", ended
    assert sorted(path.name for path in root.iterdir()) == ["archive", "packed", "plain", "text"]


@pytest.mark.timeout(30)
def test_twenty_files_are_written_side_by_side(fs, root):
    block = b"x" * (5 << 20)
    files = [fs.open(f"/many/{number}", "wb") for number in range(20)]
    for file in files:
        # More than a file keeps before it sends: each is one that the server has open.
        file.write(block)
    for file in files:
        file.close()
    assert [each.stat().st_size for each in (root / "many").iterdir()] == [len(block)] * 20


@pytest.mark.timeout(30)
def test_a_file_too_many_says_why_it_waits_and_fails(fs, monkeypatch):
    monkeypatch.setattr("farhaul._open_files._OPENING", 0.3)
    files = [fs.open(f"/many/{number}", "wb", block_size=1000) for number in range(33)]
    for file in files[:-1]:
        file.write(b"x" * 2000)
    with pytest.raises(farhaul.Error, match="/many/32 cannot be written: as many files as a connection carries") as raised:
        files[-1].write(b"x" * 2000)
    assert raised.value.code == "BUSY" and raised.value.remedy == "close one of them"
    for file in files:
        file.discard()
