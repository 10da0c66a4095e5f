"""Copies over loopback, with a server of this process at the other end."""

import asyncio
import pathlib
import pickle
import threading

import pytest

import farhaul
from farhaul._farhaul import RunningCopy


def tree(folder, count=5):
    for index in range(count):
        path = folder / f"part-{index % 2}" / f"{index}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes([index]) * (1000 + index))
    return folder


def test_a_tree_is_copied_there_and_back(tmp_path, server, root):
    source = tree(tmp_path / "source")
    report = farhaul.copy(source, server.url, recursive=True)
    assert (report.files, report.failed, report.verified) == (5, 0, True)
    assert report.as_dict()["bytes"] == sum(1000 + index for index in range(5))
    farhaul.copy(f"{server.url}source", tmp_path / "back", recursive=True)
    copied = {path.relative_to(tmp_path / "back"): path.read_bytes() for path in (tmp_path / "back").rglob("*.bin")}
    assert copied == {path.relative_to(source): path.read_bytes() for path in source.rglob("*.bin")}


def test_several_sources_and_paths_are_taken(tmp_path, server, root):
    tree(tmp_path / "source")
    sources = [tmp_path / "source/part-0/0.bin", str(tmp_path / "source/part-1/1.bin")]
    assert farhaul.copy(sources, server.url).files == 2
    assert (root / "1.bin").stat().st_size == 1001


def test_a_second_copy_sends_nothing(tmp_path, server):
    source = tree(tmp_path / "source")
    farhaul.copy(source, server.url, archive=True)
    again = farhaul.copy(source, server.url, archive=True)
    assert (again.kept, again.bytes) == (5, 0)


def test_what_a_source_lacks_is_deleted_and_patterns_are_left_out(tmp_path, server, root):
    source = tree(tmp_path / "source")
    farhaul.copy(source, server.url, recursive=True)
    (source / "part-0/0.bin").unlink()
    (source / "part-1/new.txt").write_text("left out")
    report = farhaul.copy(source, server.url, recursive=True, delete=True, exclude=["*.txt"])
    assert report.deleted == 1 and not (root / "source/part-0/0.bin").exists()
    assert (root / "source/part-1/1.bin").exists() and not (root / "source/part-1/new.txt").exists()


def test_progress_is_told_on_the_calling_thread(tmp_path, server):
    (tmp_path / "big").write_bytes(bytes(1 << 20))
    told = []
    farhaul.copy(tmp_path / "big", server.url, progress=lambda now: told.append((threading.current_thread(), now)))
    thread, last = told[-1]
    assert thread is threading.current_thread()
    assert (last.bytes, last.files, last.total_bytes) == (1 << 20, 1, 1 << 20)
    assert "1048576 of 1048576 bytes" in repr(last)


def test_an_exception_of_the_progress_function_cancels_the_copy(tmp_path, server, root):
    (tmp_path / "big").write_bytes(bytes(16 << 20))

    def refuse(now):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        farhaul.copy(tmp_path / "big", server.url, rate="8mbit", progress=refuse)
    assert not (root / "big").exists()


def test_an_interrupt_ends_a_copy_and_leaves_no_wrong_file(tmp_path, server, root, interrupt):
    (tmp_path / "big").write_bytes(bytes(16 << 20))
    interrupt(0.3)
    with pytest.raises(KeyboardInterrupt):
        farhaul.copy(tmp_path / "big", server.url, rate="8mbit")
    assert not (root / "big").exists()
    # What had arrived is kept, and nothing of it is wrong.
    farhaul.copy(tmp_path / "big", server.url)
    assert (root / "big").read_bytes() == bytes(16 << 20)


def test_a_missing_file_is_a_file_not_found_error_with_its_report(tmp_path, server):
    with pytest.raises(FileNotFoundError) as raised:
        farhaul.copy(f"{server.url}nothing", tmp_path / "here")
    error = raised.value
    assert isinstance(error, farhaul.Error) and error.code == "NOT_FOUND"
    assert error.report.failed == 1 and error.report.bytes == 0
    assert error.failures == [("nothing", "not found")]


def test_a_server_that_does_not_answer_is_a_timeout(tmp_path):
    with farhaul.listen(plain=True) as silent, pytest.raises(TimeoutError) as raised:
        farhaul.copy(__file__, f"udt://{silent.address}/", connect_timeout=0.5)
    assert raised.value.code == "CONNECT_TIMEOUT"


def test_an_unknown_server_is_refused_and_its_key_can_be_named(tmp_path, root, monkeypatch):
    with farhaul.serve(root, any_client=True) as server:
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "somebody"))
        with pytest.raises(PermissionError) as raised:
            farhaul.copy(f"{server.url}x", tmp_path / "x")
        assert raised.value.code == "HOST_KEY_UNKNOWN"
        assert "host_key_policy=" in str(raised.value) and "--" not in str(raised.value)
        (root / "x").write_text("hello")
        assert farhaul.copy(f"{server.url}x", tmp_path / "x", host_key=server.key).files == 1
        with pytest.raises(PermissionError) as raised:
            farhaul.copy(f"{server.url}x", tmp_path / "x", host_key="SHA256:" + "A" * 43)
        assert raised.value.code == "HOST_KEY_CHANGED"


def test_wrong_arguments_are_refused_before_anything_happens(tmp_path, server):
    with pytest.raises(TypeError, match="recursiv"):
        farhaul.copy(tmp_path, server.url, recursiv=True)
    with pytest.raises(ValueError, match="size-time, digest"):
        farhaul.copy(__file__, server.url, skip="perhaps")
    with pytest.raises(farhaul.UsageError):
        farhaul.copy(__file__, server.url, rate="fast")
    with pytest.raises(ValueError, match="is no place for a program"):
        farhaul.copy("-", f"{server.url}x")
    with pytest.raises(TypeError, match="argument 'mtu'"):
        farhaul.copy(__file__, server.url, mtu="large")


def test_reports_are_pickled(tmp_path, server):
    report = farhaul.copy(__file__, server.url)
    assert pickle.loads(pickle.dumps(report)).as_dict() == report.as_dict()
    assert "1 files" in repr(report) and "bytes" in dir(report)
    with pytest.raises(AttributeError, match="no field 'speed'"):
        report.speed


def test_a_server_reports_its_sessions_and_ends(tmp_path, root):
    with farhaul.serve(root) as server:
        farhaul.copy(__file__, server.url)
        with pytest.raises(farhaul.Error):
            farhaul.copy(f"{server.url}nothing", tmp_path)
        assert server.is_running
    assert not server.is_running
    reports = sorted(server.take_reports(), key=lambda pair: pair[0].session)
    (first, no_error), (_, error) = reports
    assert (first.direction, first.files, no_error) == ("received", 1, None) and error.code


def test_a_read_only_server_takes_nothing(tmp_path, root):
    with farhaul.serve(root, read_only=True) as server, pytest.raises(PermissionError):
        farhaul.copy(__file__, server.url)


def test_a_path_object_is_of_this_host_whatever_it_looks_like(tmp_path, server, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("host:name").write_text("here")
    assert farhaul.copy(pathlib.Path("host:name"), server.url).files == 1


async def test_a_task_copies_and_hears_of_progress(tmp_path, root):
    async with farhaul.serve(root) as server:
        (tmp_path / "big").write_bytes(bytes(1 << 20))
        told = []
        one = farhaul.copy_async(tmp_path / "big", server.url, progress=told.append)
        two = farhaul.copy_async(__file__, server.url)
        first, second = await asyncio.gather(one, two)
    assert (first.bytes, second.files) == (1 << 20, 1) and told[-1].files == 1


async def test_a_cancelled_task_cancels_its_copy(tmp_path, root):
    async with farhaul.serve(root) as server:
        (tmp_path / "big").write_bytes(bytes(16 << 20))
        begun = asyncio.Event()
        task = asyncio.create_task(
            farhaul.copy_async(tmp_path / "big", server.url, rate="8mbit", progress=lambda now: begun.set())
        )
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not (root / "big").exists()


def test_a_copy_goes_on_behind_a_wait_that_was_interrupted(server, root, tmp_path, interrupt):
    (root / "x").write_bytes(bytes(500_000))
    running = RunningCopy(f"{server.url}x", tmp_path / "x", rate="4mbit")
    interrupt(0.2)
    with pytest.raises(KeyboardInterrupt):
        running.wait(None)
    assert running.wait(None).files == 1
