"""What is dropped without an end is warned of, and everything with a peer shows it."""

import asyncio
import gc
import subprocess
import sys
import threading
import warnings

import pytest

import farhaul


def drop(held):
    """Drops all, also what refers to itself."""
    held.clear()
    gc.collect()


@pytest.fixture(autouse=True)
def nothing_left_of_other_tests():
    """Collects it, so that no warning of these tests is about it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture
def pair():
    """A stream, and the other end of it."""
    with farhaul.listen("localhost:0", plain=True) as listener:
        accepted = []
        accepting = threading.Thread(target=lambda: accepted.append(listener.accept(timeout=10)))
        accepting.start()
        stream = farhaul.connect(listener.address.replace("127.0.0.1", "localhost"), plain=True)
        accepting.join()
        ends = [stream, accepted.pop()]
        del stream
        yield ends
        for end in ends:
            end.abort()


def test_an_unclosed_stream_is_warned_of_and_a_closed_one_is_not(pair):
    shown = repr(pair[0])
    with pytest.warns(ResourceWarning) as warned:
        del pair[0]
    assert [str(each.message) for each in warned] == [f"unclosed {shown}"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pair[0].abort()
        del pair[0]
        gc.collect()


def test_unclosed_ports_and_servers_are_warned_of(tmp_path):
    for made in (
        lambda: farhaul.listen("127.0.0.1:0", plain=True),
        lambda: farhaul.MessageSocket.listen("127.0.0.1:0", plain=True),
        lambda: farhaul.serve(tmp_path, "127.0.0.1:0"),
    ):
        port = made()
        shown = f"unclosed {port!r}"
        with pytest.warns(ResourceWarning) as warned:
            del port
        assert [str(each.message) for each in warned] == [shown]
        port = made()
        port.close()
        assert repr(port).endswith(", closed>")
        del port


def test_a_drop_under_an_exception_keeps_the_exception(pair):
    def fails(stream):
        raise KeyError("missing")

    with pytest.warns(ResourceWarning, match="unclosed <farhaul.Stream to"), pytest.raises(KeyError, match="missing"):
        fails(pair.pop(0))


@pytest.mark.parametrize(("name", "mode"), [("x", "rb"), ("y", "wb")])
def test_an_unclosed_file_is_warned_of(server, root, name, mode):
    fsspec = pytest.importorskip("fsspec")
    (root / "x").write_bytes(b"content")
    fs, path = fsspec.url_to_fs(f"udt://{server.address}/{name}")
    files = [fs.open(path, mode)]
    with pytest.warns(ResourceWarning) as warned:
        drop(files)
    assert [str(each.message) for each in warned] == [f"unclosed <farhaul.FarhaulFile udt://{server.address}/{name}, {mode}>"]
    assert (root / name).exists(), "one that is written is finished all the same"


def test_streams_show_their_host_and_whether_they_are_closed(pair):
    here, there = pair
    at = here.peer
    host = f"localhost:{at.rpartition(':')[2]}"
    assert repr(here) == f"<farhaul.Stream to {host} ({at})>" and repr(there) == f"<farhaul.Stream to {there.peer}>"
    assert repr(farhaul.StreamReader(here)) == f"<farhaul.StreamReader of {here!r}>"
    assert repr(farhaul.StreamWriter(there)) == f"<farhaul.StreamWriter of {there!r}>"
    here.abort()
    assert repr(here) == f"<farhaul.Stream to {host} ({at}), closed>"


def test_message_sockets_show_their_host():
    with farhaul.MessageSocket.listen("127.0.0.1:0", plain=True) as listener:
        assert repr(listener) == f"<farhaul.MessageListener at {listener.address}>"
        socket = farhaul.MessageSocket.connect(listener.address, plain=True)
        assert repr(socket) == f"<farhaul.MessageSocket to {listener.address}>"
        socket.abort()
        assert repr(socket) == f"<farhaul.MessageSocket to {listener.address}, closed>"


def test_servers_of_tasks_show_their_address():
    async def show():
        async with await farhaul.start_server(lambda reader, writer: None, "127.0.0.1:0") as server:
            assert repr(server) == f"<farhaul.StreamServer at {server.address}>"
        await asyncio.sleep(0)
        assert repr(server) == f"<farhaul.StreamServer at {server.address}, closed>"

    asyncio.run(show())


def test_file_systems_and_files_show_their_host_and_no_key(server, root):
    pytest.importorskip("fsspec")
    from farhaul.fsspec import FarhaulFileSystem, FarhaulSshFileSystem

    host, port = server.address.split(":")
    fs = FarhaulFileSystem(host, int(port), host_key=server.key)
    (root / "a b").write_bytes(b"content")
    url = f"udt://{server.address}"
    assert repr(fs) == f"<farhaul.FarhaulFileSystem of {url}>" and str(fs._remote()) == f"<farhaul.RemoteFiles of {url}>"
    with fs.open("/a b") as file:
        assert str(file) == repr(file) == f"<farhaul.FarhaulFile {url}/a%20b, rb>"
    assert repr(file) == f"<farhaul.FarhaulFile {url}/a%20b, rb, closed>"
    assert (
        repr(FarhaulSshFileSystem("far.example", "alice")) == "<farhaul.FarhaulSshFileSystem of farhaul+ssh://alice@far.example>"
    )
    assert not any(server.key in repr(each) for each in (fs, file, fs._remote(), server))

    async def show():
        own = FarhaulFileSystem(host, int(port), asynchronous=True, skip_instance_cache=True)
        async with await own.open_async("/a b") as file:
            assert repr(file) == f"<farhaul.FarhaulStreamedFile {url}/a%20b, rb>"

    asyncio.run(show())


def test_a_dropped_file_is_whole_even_if_warnings_are_errors(server, root):
    pytest.importorskip("fsspec")
    host, port = server.address.split(":")
    program = f"""
from farhaul.fsspec import FarhaulFileSystem
fs = FarhaulFileSystem({host!r}, {port})
fs.open("/dropped", "wb").write(b"whole")
fs.open("/dropped", "rb").read()
"""
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0 and ran.stderr.count("ResourceWarning: unclosed") == 2, ran.stderr
    assert (root / "dropped").read_bytes() == b"whole"
