"""The file system beyond the public suite: URLs, requests, open files, and the packages that use it."""

import asyncio
import datetime
import errno
import multiprocessing
import os
import pickle
import subprocess
from itertools import accumulate

import pytest

import farhaul

fsspec = pytest.importorskip("fsspec")

from remotes import Older

from farhaul._errors import _error
from farhaul.fsspec import FarhaulFileSystem, FarhaulSshFileSystem


@pytest.fixture
def fs(server):
    host, port = server.address.split(":")
    return FarhaulFileSystem(host, int(port))


# URLs


@pytest.mark.parametrize(
    ("url", "host", "port", "path"),
    [
        ("udt://far.example:9000/a/b", "far.example", 9000, "/a/b"),
        ("udt://far.example:9000", "far.example", 9000, "/"),
        ("udt://[2001:db8:0:0:0:0:0:7]:9000/a/", "2001:db8:0:0:0:0:0:7", 9000, "/a"),
        ("udt://h:1/50%25%20of%2Fit", "h", 1, "/50% of/it"),
        ("udt://h:1/part-*.parquet", "h", 1, "/part-*.parquet"),
    ],
)
def test_urls_name_a_host_and_a_path(url, host, port, path):
    assert FarhaulFileSystem._get_kwargs_from_urls(url) == {"host": host, "port": port}
    assert FarhaulFileSystem._strip_protocol(url) == path
    fs, found = fsspec.url_to_fs(url, plain=True)
    assert (fs.host, fs.port, found) == (host, port, path)
    assert fs._strip_protocol(fs.unstrip_protocol(path)) == path


def test_a_path_without_a_protocol_is_taken_as_it_is():
    assert FarhaulFileSystem._strip_protocol("/a%20b/") == "/a%20b"
    assert FarhaulFileSystem._strip_protocol("udt://far.example//a///b/") == "/a/b"
    assert FarhaulFileSystem("far.example").unstrip_protocol("/a//b") == "udt://far.example:9000/a/b"
    assert FarhaulFileSystem("h", 1).unstrip_protocol("/a%20b") == "udt://h:1/a%2520b"
    assert FarhaulFileSystem("2001:db8::7", 1).unstrip_protocol("/x") == "udt://[2001:0db8:0000:0000:0000:0000:0000:0007]:1/x"


def test_ssh_urls_have_users_ports_and_homes():
    url = "farhaul+ssh://alice@far.example:2222/~/data/x"
    arguments = FarhaulSshFileSystem._get_kwargs_from_urls(url)
    assert arguments == {"host": "far.example", "username": "alice", "ssh_port": 2222}
    fs, path = fsspec.url_to_fs(url)
    assert isinstance(fs, FarhaulSshFileSystem) and fs._service_path(path) == b"~/data/x"
    assert fs._service_path("/etc/x") == b"/etc/x" and fs.unstrip_protocol(path) == url


@pytest.mark.parametrize("url", ["udt://alice:secret@h:1/x", "farhaul+ssh://alice:secret@h/x"])
def test_passwords_in_urls_are_refused_and_not_shown(url):
    with pytest.raises(ValueError, match="password") as raised:
        fsspec.url_to_fs(url)
    assert "secret" not in str(raised.value)


def test_what_is_missing_in_a_url_is_said():
    with pytest.raises(ValueError, match="name of the server"):
        fsspec.url_to_fs("udt:///x")
    with pytest.raises(ValueError, match="has no user"):
        fsspec.url_to_fs("udt://alice@far.example:1/x")
    with pytest.raises(ValueError, match="no port"):
        fsspec.url_to_fs("udt://far.example:http/x")
    with pytest.raises(ValueError, match="brackets"):
        FarhaulFileSystem._get_kwargs_from_urls("udt://::1:9000/x")
    with pytest.raises(TypeError, match="colour"):
        FarhaulFileSystem("h", 1, colour="red")


# Requests


def test_properties_are_those_of_the_server(fs, root):
    (root / "d").mkdir()
    (root / "d/x").write_bytes(b"content")
    (root / "link").symlink_to("d/x")
    (root / "broken").symlink_to("nowhere")
    info = fs.info("/d/x")
    assert (info["type"], info["size"], info["mode"]) == ("file", 7, (root / "d/x").stat().st_mode)
    assert info["mtime_ns"] == (root / "d/x").stat().st_mtime_ns
    assert fs.modified("/d/x") == datetime.datetime.fromtimestamp(info["mtime"], tz=datetime.UTC)
    link, broken = fs.info("/link"), fs.info("/broken")
    assert (link["type"], link["size"], link["islink"], link["destination"]) == ("file", 7, True, "d/x")
    assert (broken["type"], fs.isfile("/link"), fs.isfile("/broken")) == ("link", True, False)
    assert {entry["name"]: entry["type"] for entry in fs.ls("/")} == {"/d": "directory", "/link": "file", "/broken": "link"}
    assert fs.ls("/d/x", detail=False) == ["/d/x"] and fs.cat("/link") == b"content"
    assert fs.glob("/*/x") == ["/d/x"] and fs.find("/") == ["/broken", "/d/x", "/link"] and fs.du("/d") == 7
    assert not fs.exists("/nothing") and not fs.exists("/d/x/below") and fs.isdir("/d")


def test_names_of_any_bytes(fs, root):
    name = os.fsdecode(b"bad\xff 100%")
    fs.pipe_file(f"/{name}", b"x")
    assert os.listdir(os.fsencode(root)) == [b"bad\xff 100%"] and fs.ls("/", detail=False) == [f"/{name}"]
    assert fsspec.open(fs.unstrip_protocol(f"/{name}"), "rb").open().read() == b"x"


def test_more_entries_than_a_page_has_are_listed(fs, root):
    for index in range(2500):
        (root / f"{index}").touch()
    assert len(fs.ls("/")) == 2500


def test_ranges_are_those_of_slices(fs, root):
    content = bytes(range(200))
    (root / "x").write_bytes(content)
    for start, end in [(None, None), (10, 20), (-5, None), (None, -190), (-10, -5), (150, 900), (20, 10), (300, None), (-900, 3)]:
        assert fs.cat_file("/x", start, end) == content[start:end], (start, end)
    assert fs.cat_ranges(["/x"] * 3, [0, 5, -2], [1, 7, None]) == [content[0:1], content[5:7], content[-2:]]
    missing = fs.cat_ranges(["/x", "/nothing"], [0, 0], [1, 1], on_error="return")
    assert missing[0] == content[:1] and isinstance(missing[1], FileNotFoundError)
    assert fs.head("/x", 3) == content[:3] and fs.tail("/x", 3) == content[-3:]


def test_many_files_are_written_and_read_at_once(fs):
    files = {f"/many/{index}": bytes([index % 251]) * index for index in range(300)}
    fs.pipe(files)
    assert fs.cat(list(files)) == files and fs.find("/many") == sorted(files)


def test_exclusive_writes_and_directories(fs, root):
    fs.pipe_file("/x", b"1", mode="create")
    with pytest.raises(FileExistsError):
        fs.pipe_file("/x", b"2", mode="create")
    assert (root / "x").read_bytes() == b"1"
    fs.mkdir("/a/b")
    with pytest.raises(FileExistsError):
        fs.mkdir("/a/b")
    with pytest.raises(FileExistsError):
        fs.makedirs("/a/b")
    fs.makedirs("/a/b", exist_ok=True)
    with pytest.raises(OSError, match="a"):
        fs.rmdir("/a")
    fs.rmdir("/a/b")
    fs.touch("/a/new")
    with pytest.raises(NotImplementedError):
        fs.touch("/a/new", truncate=False)
    fs.rm("/a", recursive=True)
    assert not fs.exists("/a")


def test_a_move_is_a_rename_on_the_server(fs, root):
    fs.pipe({"/d/x": b"x", "/d/y": b"y"})
    number = (root / "d/x").stat().st_ino
    fs.mv("/d/x", "/e/x")
    fs.mv("/d", "/f")
    assert (root / "e/x").stat().st_ino == number and (root / "f/y").read_bytes() == b"y"
    fs.cp_file("/e/x", "/e/copy")
    assert (root / "e/copy").read_bytes() == b"x"


def test_digests_are_those_of_b3sum(fs, root):
    (root / "x").write_bytes(b"abc")
    digest = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"
    assert fs.digest("/x") == digest


def test_keys_and_checksums_tell_versions_apart(fs, root):
    (root / "x").write_bytes(b"abc")
    before = fs.ukey("/x"), fs.checksum("/x")
    assert before == (fs.ukey("/x"), fs.checksum("/x"))
    (root / "x").write_bytes(b"abcd")
    fs.invalidate_cache()
    assert fs.ukey("/x") != before[0] and fs.checksum("/x") != before[1]


def test_files_are_got_and_put_with_callbacks(fs, root, tmp_path):
    content = os.urandom(5_000_000)
    (tmp_path / "from").write_bytes(content)
    callbacks = [fsspec.callbacks.Callback(), fsspec.callbacks.Callback()]
    fs.put_file(tmp_path / "from", "/d/x", callback=callbacks[0])
    fs.get_file("/d/x", tmp_path / "to/x", callback=callbacks[1])
    assert (tmp_path / "to/x").read_bytes() == content
    assert [(callback.size, callback.value) for callback in callbacks] == [(len(content), len(content))] * 2
    with pytest.raises(FileNotFoundError):
        fs.get_file("/nothing", tmp_path / "to/y")
    assert os.listdir(tmp_path / "to") == ["x"]


# Open files


def test_a_file_appears_with_its_end_or_not_at_all(fs, root):
    with fs.open("/x", "wb", block_size=100_000) as file:
        for _ in range(10):
            file.write(bytes(99_999))
        assert os.listdir(root) != ["x"]
    assert (root / "x").stat().st_size == 999_990
    with pytest.raises(LookupError), fs.open("/x", "wb", block_size=1000) as file:
        file.write(bytes(5000))
        raise LookupError
    dropped = fs.open("/y", "wb", block_size=1000)
    dropped.write(bytes(5000))
    del dropped
    fs.open("/empty", "wb").close()
    assert (root / "x").stat().st_size == 999_990 and fs.info("/empty")["size"] == 0
    assert sorted(os.listdir(root)) == ["empty", "x", "y"] and (root / "y").stat().st_size == 5000
    with pytest.raises(NotImplementedError, match="append"):
        fs.open("/x", "ab")


def test_the_files_of_a_transaction_appear_together(fs, root):
    with fs.transaction:
        for index in range(12):
            with fs.open(f"/t/{index}", "wb") as file:
                file.write(b"x")
        assert not fs.exists("/t/0")
    assert len(fs.ls("/t")) == 12
    with pytest.raises(LookupError), fs.transaction:
        with fs.open("/u/x", "wb") as file:
            file.write(b"x")
        raise LookupError
    assert fs.find("/u") == []


def test_reading_goes_ahead_and_about(fs, root):
    content = os.urandom(3_000_000)
    (root / "x").write_bytes(content)
    with fs.open("/x") as file:
        blocks = list(iter(lambda: file.read(70_000), b""))
        assert b"".join(blocks) == content and file.cache.hit_count > 40 > file.cache.miss_count
        for at, count in [(5, 10), (2_900_000, 200_000), (0, 1), (1_000_000, 1_500_000), (2_999_999, 5), (10, 0)]:
            file.seek(at)
            assert file.read(count) == content[at : at + count]
        file.seek(-3, 2)
        room = bytearray(10)
        assert file.readinto(room) == 3 and room[:3] == content[-3:]
    (root / "text").write_text("one\ntwo\n")
    with fs.open("/text", "r") as file:
        assert file.readlines() == ["one\n", "two\n"]


def test_a_column_is_read_without_the_others_and_ahead_of_the_third_read(fs, root):
    content = os.urandom(20_000_000)
    (root / "x").write_bytes(content)
    with fs.open("/x") as file:
        for at in range(0, 20_000_000, 2_000_000):
            file.seek(at)
            assert file.read(100_000) == content[at : at + 100_000]
        assert file.cache.total_requested_bytes == 10 * 100_000
        assert (file.cache.hit_count, file.cache.miss_count) == (7, 3)
        # Elsewhere, and on from there.
        for at in [1_234_567, 5, 7_000_000]:
            file.seek(at)
            assert file.read(1000) == content[at : at + 1000]
        assert file.read(300_000) == content[7_001_000:7_301_000]


# Processes and tasks


def test_instances_are_pickled_by_their_arguments(fs, root):
    (root / "x").write_bytes(b"x")
    again = pickle.loads(pickle.dumps(fs))
    assert again == fs and again.cat("/x") == b"x"
    with fs.open("/x") as file:
        assert pickle.loads(pickle.dumps(file)).read() == b"x"


def read_elsewhere(fs, path, results):
    results.put(fs.cat(path))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_have_connections_of_their_own(server, root, method):
    host, port = server.address.split(":")
    (root / "x").write_bytes(b"x")
    fs = FarhaulFileSystem(host, int(port))
    assert fs.cat("/x") == b"x"
    context = multiprocessing.get_context(method)
    results = context.Queue()
    child = context.Process(target=read_again if method == "fork" else read_elsewhere, args=(fs, "/x", results))
    child.start()
    assert results.get(timeout=30) == b"x"
    child.join(30)
    assert fs.cat("/x") == b"x"


def read_again(fs, path, results):
    # The event loop of fsspec does not survive a fork, and a new instance has a new one.
    results.put(pickle.loads(pickle.dumps(fs)).cat(path))


async def test_tasks_use_it_without_threads(server, root):
    (root / "x").write_bytes(b"0123456789")
    host, port = server.address.split(":")
    fs = FarhaulFileSystem(host, int(port), asynchronous=True)
    parts = await asyncio.gather(*(fs._cat_file("/x", at, at + 1) for at in range(10)))
    assert b"".join(parts) == b"0123456789"
    async with await fs.open_async("/y", "wb") as file:
        await file.write(b"of a task")
    async with await fs.open_async("/y") as file:
        assert await file.read(2) == b"of" and await file.read() == b" a task"
    with pytest.raises(LookupError):
        async with await fs.open_async("/z", "wb") as file:
            await file.write(b"x")
            raise LookupError
    assert not await fs._exists("/z")


def test_a_lost_server_is_an_error_and_no_missing_file(root):
    with farhaul.serve(root) as server:
        host, port = server.address.split(":")
        fs = FarhaulFileSystem(host, int(port), connect_timeout=0.3)
        assert not fs.exists("/x")
    # fsspec has a class of its own for time-outs.
    with pytest.raises(TimeoutError) as raised:
        fs.exists("/x")
    assert raised.value.__cause__.code == "CONNECT_TIMEOUT"
    with pytest.raises(TimeoutError) as raised, fs.open("/y", "wb") as file:
        file.write(b"y")
    assert raised.value.__cause__.code == "CONNECT_TIMEOUT"


def test_rights_are_those_of_the_server(root):
    (root / "x").write_bytes(b"x")
    with farhaul.serve(root, read_only=True) as server:
        fs = fsspec.filesystem("udt", host="127.0.0.1", port=int(server.address.split(":")[1]))
        assert fs.cat("/x") == b"x"
        with pytest.raises(PermissionError):
            fs.pipe_file("/y", b"y")
        with pytest.raises(PermissionError):
            fs.rm("/x")


# Packages that use it


@pytest.mark.filterwarnings("ignore")
def test_zarr_and_xarray_write_and_read(server):
    zarr, xarray, numpy = pytest.importorskip("zarr"), pytest.importorskip("xarray"), pytest.importorskip("numpy")
    url = f"udt://{server.address}/array.zarr"
    numbers = numpy.arange(10_000.0).reshape(100, 100)
    zarr.create_array(url, data=numbers, chunks=(10, 100))
    assert (zarr.open_array(url, mode="r")[15:25, 3] == numbers[15:25, 3]).all()
    data = xarray.Dataset({"t": (("y", "x"), numbers)}, coords={"y": numpy.arange(100)})
    data.to_zarr(f"udt://{server.address}/set.zarr", consolidated=True)
    again = xarray.open_zarr(f"udt://{server.address}/set.zarr", chunks=None)
    assert again["t"].sel(y=7).sum() == numbers[7].sum()


def test_pyarrow_reads_the_columns_that_it_needs(fs, root):
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    columns = {f"c{index}": pyarrow.array(range(index, index + 50_000)) for index in range(8)}
    parquet.write_table(pyarrow.table(columns), "/d/x.parquet", filesystem=fs, compression="none", use_dictionary=False)
    read = parquet.read_table("/d/x.parquet", columns=["c3"], filesystem=fs)
    assert read.column_names == ["c3"] and read["c3"][9].as_py() == 12
    with fs.open("/d/x.parquet") as file:
        assert parquet.read_table(file, columns=["c3"]).num_rows == 50_000
        size = (root / "d/x.parquet").stat().st_size
        assert file.cache.total_requested_bytes < size / 3


def test_a_column_is_requested_in_all_row_groups_whatever_their_order(fs, root):
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    columns = {f"c{index}": pyarrow.array(os.urandom(24) for _ in range(20_000)) for index in range(4)}
    uneven = [3_000, 9_000, 1_000, 2_000, 5_000]
    with parquet.ParquetWriter(root / "x.parquet", pyarrow.table(columns).schema, compression="none") as writer:
        for at, rows in zip(accumulate([0, *uneven]), uneven, strict=False):
            writer.write_table(pyarrow.table(columns).slice(at, rows))
    content = (root / "x.parquet").read_bytes()
    groups = [parquet.read_metadata(root / "x.parquet").row_group(group).column(2) for group in range(5)]
    chunks = [(chunk.dictionary_page_offset or chunk.data_page_offset, chunk.total_compressed_size) for chunk in groups]
    with fs.open("/x.parquet") as file:
        file.seek(-(32 << 10), 2)
        file.read()
        before, missed = file.cache.total_requested_bytes, file.cache.miss_count
        for group in (0, 4, 2, 1, 3):
            start, length = chunks[group]
            file.seek(start)
            assert file.read(length) == content[start : start + length]
        assert file.cache.total_requested_bytes - before == sum(length for _, length in chunks), "each once, and nothing else"
        assert file.cache.miss_count - missed <= 2
    with fs.open("/x.parquet") as file:
        file.seek(-100, 2)
        assert file.read() == content[-100:]
        file.seek(chunks[1][0])
        assert file.read(chunks[1][1]) == content[chunks[1][0] : sum(chunks[1])]
        assert file.cache.total_requested_bytes == sum(length for _, length in chunks), "its columns are known"
    (root / "x.parquet").write_bytes(content[:-100])
    fs.invalidate_cache()
    with fs.open("/x.parquet") as file:
        assert file.cache.columns is None


def test_the_end_of_a_table_is_requested_with_its_properties(fs, root):
    content = os.urandom(100_000)
    (root / "x.parquet").write_bytes(content)
    (root / "small.parquet").write_bytes(content[:10])
    (root / "link.parquet").symlink_to("small.parquet")
    (root / "empty.parquet").write_bytes(b"")
    with fs.open("/x.parquet") as file:
        for at, whence in ((-8, 2), (-60_000, 2)):
            file.seek(at, whence)
            assert file.read() == content[at:]
        assert (file.cache.hit_count, file.cache.miss_count, file.cache.total_requested_bytes) == (2, 0, 65_536)
        file.seek(0)
        assert file.read() == content and file.info()["mtime_ns"] == (root / "x.parquet").stat().st_mtime_ns
    for name in ("small", "link"):
        with fs.open(f"/{name}.parquet") as file:
            assert file.read() == content[:10]
    assert fs.open("/empty.parquet").read() == b""
    with pytest.raises(FileNotFoundError):
        fs.open("/none.parquet")


def test_properties_are_remembered_for_a_second_and_changes_made_here_are_seen(fs, root, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(fs._recent, "_clock", lambda: now[0])
    (root / "x").write_bytes(b"12")
    assert fs.info("/x")["size"] == 2
    (root / "x").write_bytes(b"123")
    assert fs.info("/x")["size"] == 2
    assert fs.open("/x").read() == b"123" and fs.size("/x") == 3, "whoever opens a file gets all of it"
    (root / "x").write_bytes(b"1234")
    now[0] += 1.5
    assert fs.info("/x")["size"] == 4
    for change in (
        lambda: fs.pipe_file("/x", b"12345"),
        lambda: fs.cp_file("/x", "/y"),
        lambda: fs.mv("/y", "/z"),
        lambda: fs.rm_file("/z"),
        lambda: fs.mkdir("/d/e"),
        lambda: fs.rmdir("/d/e"),
        lambda: fs.rm("/d", recursive=True),
        lambda: fs.touch("/t"),
        lambda: fs.invalidate_cache(),
    ):
        fs.info("/x")
        change()
        assert fs._recent.get("/x") is None, "what was said before a change does not count"
    with fs.open("/x", "wb") as file:
        file.write(b"1")
    assert fs.info("/x")["size"] == 1


def test_a_table_that_changes_while_it_is_opened_is_an_error_and_no_truncated_table(fs, root):
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    parquet.write_table(pyarrow.table({"a": range(100_000)}), root / "x.parquet", compression="none")
    assert parquet.read_table("/x.parquet", filesystem=fs).num_rows == 100_000
    fs.info("/x.parquet")
    with fs.open("/x.parquet") as file:
        (root / "x.parquet").write_bytes(b"PAR1" * 100_000)
        with pytest.raises(OSError, match="changed while it was read"):
            file.read(10)
    assert len((root / "x.parquet").read_bytes()) == fs.info("/x.parquet")["size"]
    with fs.open("/x.parquet") as file:
        (root / "x.parquet").write_bytes(b"1RAP" * 100_000)
        with pytest.raises(OSError, match="changed while it was read"):
            file.read(10)
    parquet.write_table(pyarrow.table({"a": [1, 2, 3, 4]}), root / "x.parquet")
    assert parquet.read_table("/x.parquet", filesystem=fs).num_rows == 4


def test_a_file_that_is_replaced_by_one_of_the_same_size_while_it_is_fetched_is_an_error(fs, root, tmp_path, monkeypatch):
    (root / "x").write_bytes(b"12345678")
    info = fs._info_now

    async def before_it_changes(path):
        said = await info(path)
        (root / "x").write_bytes(b"87654321")
        return said

    with monkeypatch.context() as patch, pytest.raises(OSError, match="changed while it was read"):
        patch.setattr(fs, "_info_now", before_it_changes)
        fs.get_file("/x", tmp_path / "here")
    assert not (tmp_path / "here").exists()
    fs.get_file("/x", tmp_path / "here")
    assert (tmp_path / "here").read_bytes() == b"87654321"


async def test_the_end_of_a_table_belongs_to_the_version_that_was_said(server, root):
    host, port = server.address.split(":")
    fs = FarhaulFileSystem(host, int(port), asynchronous=True, skip_instance_cache=True)
    (root / "x.parquet").write_bytes(b"0123456789")
    info, range_of = fs._info_now, fs._range_of

    async def before_it_changes(*arguments):
        content, _ = await range_of(*arguments)
        fs._range_of = range_of
        return content[::-1], (7, 7, 7)

    fs._range_of = before_it_changes
    found, tail = await fs._info_and_tail("/x.parquet", 4)
    assert found["size"] == 10 and await asyncio.wrap_future(tail) == b"6789"

    async def grows(path):
        return {**await info(path), "size": 7}

    fs._info_now = grows
    found, tail = await fs._info_and_tail("/x.parquet", 4)
    with pytest.raises(farhaul.FileChangedError):
        await asyncio.wrap_future(tail)


# Files that change while they are read


def replaced(path, content):
    path.with_suffix(".beside").write_bytes(content)
    path.with_suffix(".beside").replace(path)


def in_place(path, content):
    with open(path, "r+b") as file:
        file.write(content)


@pytest.mark.parametrize("change", [replaced, in_place])
def test_an_open_file_that_gets_another_content_is_an_error_and_no_mixture(fs, root, change):
    (root / "x").write_bytes(b"1" * 10_000_000)
    with fs.open("/x") as file:
        assert file.read(10) == b"1" * 10
        change(root / "x", b"2" * 10_000_000)
        file.seek(9_000_000)
        with pytest.raises(farhaul.FileChangedError, match="/x changed while it was read") as raised:
            file.read(10)
        with pytest.raises(farhaul.FileChangedError):
            file.read(10)
    assert raised.value.code == "SOURCE_CHANGED" and raised.value.errno == errno.EBUSY
    with fs.open("/x") as file:
        assert file.read() == b"2" * 10_000_000


def test_an_open_file_that_only_grows_goes_on_and_one_that_is_rewritten_and_longer_does_not(fs, root):
    (root / "log").write_bytes(b"1" * 10_000_000)
    with fs.open("/log") as file:
        assert file.read(10) == b"1" * 10
        with open(root / "log", "ab") as log:
            log.write(b"2" * 100)
        file.seek(9_000_000)
        assert file.read() == b"1" * 1_000_000
        replaced(root / "log", b"3" * 20_000_000)
        file.seek(5_000_000)
        with pytest.raises(farhaul.FileChangedError):
            file.read(10)


def test_a_file_that_is_replaced_before_its_first_read_is_read_whole_or_is_an_error(fs, root):
    (root / "x").write_bytes(b"1" * 100)
    with fs.open("/x") as first, fs.open("/x") as second, fs.open("/x", "r") as text:
        replaced(root / "x", b"2" * 5_000_000)
        assert first.read() == b"2" * 5_000_000 == second.read(10) + second.read()
        assert text.read() == "2" * 5_000_000
    for options in ({}, {"cache_type": "readahead"}):
        with fs.open("/x", **options) as file:
            if not options:
                assert file.seek(-10, os.SEEK_END) == 4_999_990, "now the size counts"
                file.seek(0)
            replaced(root / "x", (b"3" if options else b"2") * 5_000_010)
            with pytest.raises(farhaul.FileChangedError):
                file.read(10)
        replaced(root / "x", b"2" * 5_000_000)
    with fs.open("/x") as file:
        replaced(root / "x", b"3" * 10)
        with pytest.raises(farhaul.FileChangedError):
            file.read()


async def test_so_is_a_file_of_tasks(server, root):
    host, port = server.address.split(":")
    fs = FarhaulFileSystem(host, int(port), asynchronous=True, skip_instance_cache=True)
    (root / "x").write_bytes(b"1" * 100)
    async with await fs.open_async("/x") as first, await fs.open_async("/x") as second:
        replaced(root / "x", b"2" * 1000)
        assert await first.read() == b"2" * 1000
        second.seek(0, os.SEEK_END)
        second.seek(0)
        with pytest.raises(farhaul.FileChangedError):
            await second.read()
    (root / "x.zip").write_bytes(b"1" * 100)
    async with await fs.open_async("/x.zip") as archive:
        assert await archive.read(10) == b"1" * 10
        replaced(root / "x.zip", b"1" * 200)
        with pytest.raises(farhaul.FileChangedError):
            await archive.read(10)
    with pytest.raises(IsADirectoryError):
        await fs.open_async("/")


def test_a_directory_is_no_file(fs, root):
    (root / "d").mkdir()
    for path in ("/", "/d"):
        with pytest.raises(IsADirectoryError, match="is a directory"):
            fs.open(path)


async def test_a_file_of_tasks_is_of_one_version_too(server, root):
    host, port = server.address.split(":")
    fs = FarhaulFileSystem(host, int(port), asynchronous=True, skip_instance_cache=True)
    (root / "x").write_bytes(b"1" * 1000)
    async with await fs.open_async("/x") as file:
        assert await file.read(10) == b"1" * 10
        replaced(root / "x", b"2" * 1000)
        with pytest.raises(farhaul.FileChangedError):
            await file.read(10)


def test_ranges_of_one_file_that_are_read_together_are_of_one_version(fs, root, monkeypatch):
    (root / "x").write_bytes(b"1" * 1000)
    (root / "y").write_bytes(b"y" * 1000)
    range_of = fs._range_of

    async def between_changes(path, *arguments):
        read = await range_of(path, *arguments)
        replaced(root / "x", b"2" * 1000)
        return read

    monkeypatch.setattr(fs, "_range_of", between_changes)
    first, second, other = fs.cat_ranges(["/x", "/x", "/y"], [0, 500, 0], [10, 510, 10], batch_size=1)
    assert isinstance(first, farhaul.FileChangedError) and isinstance(second, farhaul.FileChangedError) and other == b"y" * 10
    with pytest.raises(farhaul.FileChangedError):
        fs.cat_ranges(["/x", "/x"], [0, 500], [10, 510], batch_size=1, on_error="raise")


def test_a_slice_from_the_end_is_of_the_version_whose_end_it_is(fs, root, monkeypatch):
    (root / "x").write_bytes(b"1" * 1000)
    info = fs._info_now

    async def before_it_changes(path):
        said = await info(path)
        replaced(root / "x", b"2" * 2000)
        return said

    monkeypatch.setattr(fs, "_info_now", before_it_changes)
    with pytest.raises(farhaul.FileChangedError):
        fs.cat_file("/x", -10, -5)


# A host that is lost is no empty directory


@pytest.fixture
def lost(root):
    """A tree, and the files of a server that leaves."""
    for name in ["a/x", "b/x", "c/d/x"]:
        (root / name).parent.mkdir(parents=True)
        (root / name).write_bytes(b"x")
    with farhaul.serve(root) as server:
        host, port = server.address.split(":")
        yield FarhaulFileSystem(host, int(port), connect_timeout=0.3), server


@pytest.mark.parametrize(
    "ask",
    [
        lambda fs, here: list(fs.walk("/")),
        lambda fs, here: fs.find("/"),
        lambda fs, here: fs.find("/", withdirs=True, detail=True),
        lambda fs, here: fs.glob("/*/x"),
        lambda fs, here: fs.du("/"),
        lambda fs, here: fs.expand_path("/", recursive=True),
        lambda fs, here: fs.ls("/"),
        lambda fs, here: fs.info("/a"),
        lambda fs, here: fs.exists("/a"),
        lambda fs, here: fs.isdir("/a"),
        lambda fs, here: fs.isfile("/a/x"),
        lambda fs, here: fs.cat("/", recursive=True),
        lambda fs, here: fs.get("/", f"{here}/", recursive=True),
        lambda fs, here: fs.cp("/a", "/z", recursive=True),
        lambda fs, here: fs.rm(["/a", "/b"], recursive=True),
        lambda fs, here: fs.mv("/a", "/z"),
        lambda fs, here: fs.put(f"{here}/", "/z", recursive=True),
    ],
)
def test_without_a_server_everything_fails_and_nothing_is_missing(lost, tmp_path, ask):
    fs, server = lost
    (tmp_path / "here").mkdir()
    (tmp_path / "here/x").write_bytes(b"x")
    server.close()
    with pytest.raises(OSError) as raised:
        ask(fs, tmp_path / "here")
    assert not isinstance(raised.value, (FileNotFoundError, NotADirectoryError))
    assert os.listdir(tmp_path / "here") == ["x"]


def test_a_server_that_leaves_during_a_walk_is_an_error(lost, monkeypatch):
    fs, server = lost
    older = Older(fs._remote())
    monkeypatch.setattr(fs, "_remote", lambda: older)
    walked = fs.walk("/")
    assert next(walked) == ("/", ["a", "b", "c"], [])
    server.close()
    with pytest.raises(OSError):
        list(walked)


@pytest.mark.parametrize("code", ["PEER_LOST", "PROTOCOL", "PERMISSION_DENIED", "ACCESS_DENIED", "INTEGRITY"])
def test_a_directory_that_cannot_be_listed_is_an_error_and_one_that_is_gone_is_left_out(lost, tmp_path, monkeypatch, code):
    fs, _ = lost
    failures = [_error(code, "below c", None)]
    remote = fs._remote()

    class FailsBelowC:
        async def list_tree(self, *arguments):
            parts, cursor = await remote.list_tree(*arguments)
            return [(path, [], failures[0]) if path == b"c/d" else (path, *rest) for path, *rest in parts], cursor

    monkeypatch.setattr(fs, "_remote", FailsBelowC)
    for ask in [fs.find, fs.du, lambda path: fs.get(path, f"{tmp_path}/here", recursive=True), lambda path: list(fs.walk(path))]:
        with pytest.raises(farhaul.Error, match="below c"):
            ask("/")
    assert not (tmp_path / "here").exists()
    told = []
    assert [path for path, _, _ in fs.walk("/", on_error=told.append)] == ["/", "/a", "/b", "/c"] and told == failures
    failures[0] = _error("NOT_FOUND", "it is gone", None)
    assert fs.find("/") == ["/a/x", "/b/x"]
    with pytest.raises(FileNotFoundError):
        list(fs.walk("/", on_error="raise"))


def test_a_link_is_not_broken_because_the_server_is_lost(lost, root, monkeypatch):
    fs, _ = lost
    (root / "link").symlink_to("a/x")
    entry = {**fs.info("/link"), "type": "link"}

    class Lost:
        async def stat(self, path):
            raise _error("PEER_LOST", "lost", None)

    monkeypatch.setattr(fs, "_remote", Lost)
    with pytest.raises(farhaul.LostError):
        fs._sync(fs._followed, entry)


def test_pandas_reads_and_writes(server):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1, 2, 3]})
    table.to_csv(f"udt://{server.address}/x.csv", index=False)
    assert pandas.read_csv(f"udt://{server.address}/x.csv").equals(table)


# Hosts that ssh reaches


def test_files_over_ssh(tmp_path):
    program = os.environ.get("FARHAUL_PROGRAM", "")
    if not os.access(program, os.X_OK):
        pytest.skip("the program farhaul was not built")
    # In place of ssh: runs the command here.
    shell = tmp_path / "ssh"
    shell.write_text(
        '#!/bin/sh\nwhile [ $# -gt 0 ]; do case "$1" in -o|-p|-i|-J) shift 2;; -*) shift;; *) break;; esac; done\n'
        'shift\nexec sh -c "$*"\n'
    )
    shell.chmod(0o755)
    version = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60).stdout
    assert farhaul.__version__ in version
    fs = FarhaulSshFileSystem("here", ssh=[str(shell)], remote_path=program)
    fs.pipe_file(f"{tmp_path}/x", b"over ssh")
    assert (tmp_path / "x").read_bytes() == b"over ssh" and fs.cat(f"{tmp_path}/x") == b"over ssh"
    assert farhaul.copy(tmp_path / "x", f"here:{tmp_path}/y", ssh=[str(shell)], remote_path=program).files == 1
