"""Copies between the workers of a cluster, as processes of this machine."""

from __future__ import annotations

import filecmp
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

distributed = pytest.importorskip("distributed")

import farhaul
import farhaul.dask
from farhaul.dask import _agent

MIB = 1 << 20


@pytest.fixture(scope="module")
def client():
    """Three workers, 0 to 2, with a nanny each that starts a successor."""
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, dashboard_address="127.0.0.1:0", resources={"nic": 1}, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def files(tmp_path):
    """Makes files below a folder of a worker, and names their pairs with the same names at another one."""

    def make(source: int, sink: int, sizes: dict[str, int]) -> list[tuple[str, str]]:
        pairs = []
        for name, size in sizes.items():
            path = tmp_path / f"at{source}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(os.urandom(size))
            pairs.append((f"{source}:{path}", f"{sink}:{tmp_path}/to{sink}/{name}"))
        return pairs

    return make


def are_equal(pairs):
    return all(filecmp.cmp(source.partition(":")[2], sink.partition(":")[2], shallow=False) for source, sink in pairs)


def wait_for(what, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "what the test waits for did not happen"
        time.sleep(0.02)


def chunks(folder, name):
    """The chunks of 1 MiB that have arrived of an incomplete file: each is 48 bytes of its journal."""
    return max((journal.stat().st_size // 48 for journal in folder.glob(f".{name}.*.fhjournal")), default=0)


def test_files_go_from_workers_to_workers_once_and_are_reported_one_by_one(client, files):
    sizes = {"a": 300_000, "empty": 0, "deep/b": 70_000, "with blank, and comma/c": 10, "deep/ä\\": 5}
    pairs = files(0, 1, sizes) + files(1, 2, {"large": 65 * MIB, "small": 1})
    told = []
    report = farhaul.dask.copy(pairs, client, resources={"nic": 1}, progress=told.append)
    assert are_equal(pairs)
    assert [(file.source, file.sink) for file in report] == pairs
    assert {file.status for file in report} == {"verified"}
    assert {file.attempts for file in report} == {1}
    assert [file.bytes for file in report] == [*sizes.values(), 65 * MIB, 1]
    assert all(len(file.digest) == 64 for file in report)
    assert [file.worker for file in report] == ["0"] * 5 + ["1"] * 2
    assert report.moved_bytes == report.bytes == sum(file.moved_bytes for file in report)
    assert report.resent_bytes == 0
    assert told[-1].total_files == len(pairs)

    again = farhaul.dask.copy(pairs, client)
    assert {file.status for file in again} == {"kept"}
    table = again.to_dataframe()
    assert list(table["bytes"]) == [file.bytes for file in again]
    assert list(table.columns[:3]) == ["source", "sink", "status"]


def test_a_dry_run_lists_sizes_and_copies_nothing(client, files):
    pairs = files(0, 1, {"a": 10, "b": 20})
    report = farhaul.dask.copy(pairs, client, dry_run=True)
    assert [(file.status, file.bytes, file.worker) for file in report] == [("planned", 10, "0"), ("planned", 20, "0")]
    assert not os.path.exists(pairs[0][1].partition(":")[2])


def test_what_cannot_be_copied_is_told_after_everything_else_was(client, files, tmp_path):
    good = files(0, 1, {"good": 10})
    bad = [(f"0:{tmp_path}/missing", f"1:{tmp_path}/to1/missing"), (f"nobody:{tmp_path}/x", f"1:{tmp_path}/to1/x")]
    with pytest.raises(farhaul.dask.CopyError, match="2 of 3 pairs") as raised:
        farhaul.dask.copy([*bad, *good], client, patience=0.1)
    report = raised.value.copied
    assert [file.status for file in report] == ["failed", "failed", "verified"]
    assert [file.code for file in report] == ["NOT_FOUND", "PEER_LOST", None]
    assert report.files[0].attempts == 1, "another attempt would not find it either"
    assert are_equal(good)
    assert farhaul.dask.copy(bad, client, patience=0.1, errors="collect").failed


def test_a_directory_that_cannot_be_made_fails_its_own_pairs_alone(client, files, tmp_path):
    good = files(0, 1, {"good": 10, "too": 20})
    tmp_path.joinpath("file").write_text("in the way")
    source = good[0][0]
    bad = [(source, f"1:{tmp_path}/file/below/it")]
    report = farhaul.dask.copy([*bad, *good], client, errors="collect")
    assert [file.status for file in report] == ["failed", "verified", "verified"]
    assert report.files[0].code == "NOT_A_DIRECTORY" and "below" in report.files[0].error
    assert report.files[0].attempts == 1 and are_equal(good)


def test_a_cancelled_copy_ends_on_its_worker_and_goes_on_later(client, files, tmp_path):
    pairs = files(0, 1, {"quick": 10, "slow": 12 * MIB})
    with farhaul.dask.begin(pairs, client, batch_bytes=1, rate="40mbit") as copies:
        assert next(iter(copies)).source.endswith("quick")
        wait_for(lambda: chunks(tmp_path / "to1", "slow") > 4)
    report = copies.report()
    assert [file.status for file in report] == ["verified", "cancelled"]
    assert client.run(lambda: len(_agent._agents)) == dict.fromkeys(client.run(os.getpid), 0)
    again = farhaul.dask.copy(pairs, client)
    assert are_equal(pairs)
    assert again.files[1].moved_bytes <= 9 * MIB


def about_progress(dask_scheduler):
    """The tasks by the bar of the dashboard, and by their states. A bar counts them until they are forgotten."""
    prefixes = dask_scheduler.task_prefixes.items()
    states = {
        name: {state: count for state, count in prefix.states.items() if count and state != "forgotten"}
        for name, prefix in prefixes
    }
    return {name: counts for name, counts in states.items() if counts}


def test_the_dashboard_has_one_bar_for_a_copy_which_counts_what_is_done(client, files, tmp_path):
    pairs = files(0, 1, {"a": 10, "slow": 12 * MIB}) + files(2, 1, {"b": 10, "c": 10})
    with farhaul.dask.begin(pairs, client, batch_bytes=1, rate="40mbit") as copies:
        done = iter(copies)
        assert {os.path.basename(next(done).source) for _ in range(3)} == {"a", "b", "c"}
        wait_for(lambda: chunks(tmp_path / "to1", "slow") > 0)
        assert client.run_on_scheduler(about_progress) == {"farhaul-copy": {"memory": 3, "processing": 1}}
        names = client.run_on_scheduler(lambda dask_scheduler: sorted(key.split("-")[2] for key in dask_scheduler.tasks))
        assert names == ["1_0_to_1", "2_2_to_1", "3_0_to_1", "4_2_to_1"]
    wait_for(lambda: client.run_on_scheduler(about_progress) == {})


def test_a_sink_that_is_killed_has_a_successor_that_goes_on(client, files, tmp_path):
    pairs = files(0, 2, {"large": 24 * MIB}) + files(1, 2, {"small": 100})
    [killed] = [about["pid"] for about in client.run(about_worker).values() if about["name"] == "2"]
    with farhaul.dask.begin(pairs, client, rate="100mbit") as copies:
        wait_for(lambda: chunks(tmp_path / "to2", "large") > 8)
        os.kill(killed, signal.SIGKILL)
        report = copies.report()
    assert are_equal(pairs)
    assert [file.status for file in report] == ["verified", "verified"]
    assert report.files[0].attempts >= 2
    assert 24 * MIB <= report.moved_bytes
    assert report.resent_bytes < 8 * MIB
    assert [path.name for path in sorted((tmp_path / "to2").iterdir())] == ["large", "small"]
    client.wait_for_workers(3, timeout=20)


def has_ended(session, dask_worker):
    return _agent.agent_of(dask_worker, session) is None


def about_worker(dask_worker):
    return {"pid": os.getpid(), "name": str(dask_worker.name)}


def test_servers_outside_of_the_cluster_may_be_an_end(client, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "a").write_bytes(b"away")
    with farhaul.serve(tmp_path / "outside", plain=True) as server:
        away = farhaul.dask.copy([(f"0:{tmp_path}/a", f"{server.url}b")], client, plain=True)
        back = farhaul.dask.copy([(f"{server.url}b", f"1:{tmp_path}/back/c")], client, plain=True)
    assert (tmp_path / "back/c").read_bytes() == b"away"
    assert [report.files[0].worker for report in (away, back)] == ["0", "1"]


def test_whole_trees_are_pairs_as_well(client, files, tmp_path):
    files(0, 1, {"tree/a": 10, "tree/deep/b": 20})
    report = farhaul.dask.copy([(f"0:{tmp_path}/at0/tree", f"1:{tmp_path}/to1/tree")], client, recursive=True)
    assert (report.files[0].files, report.files[0].bytes, report.files[0].digest) == (2, 30, None)
    assert (tmp_path / "to1/tree/deep/b").stat().st_size == 20


def test_a_worker_whose_driver_is_silent_ends_its_part(client, tmp_path):
    [address] = [address for address, about in client.run(about_worker).items() if about["name"] == "0"]
    key = client.run(_agent.begin, "abandoned", workers=[address])[address]
    service = _agent.Service((str(tmp_path),), "127.0.0.1:0")
    served = client.run(_agent.open_server, "abandoned", service, [key], workers=[address])[address]
    assert served.root == str(tmp_path)

    def forget(dask_worker):
        _agent.agent_of(dask_worker, "abandoned")._deadline = 0.0

    client.run(forget, workers=[address])
    wait_for(lambda: client.run(has_ended, "abandoned", workers=[address])[address])


def test_data_frames_are_read_from_a_server(tmp_path):
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    for number in range(2):
        frame = pandas.DataFrame({"t": range(100 * number, 100 * number + 100), "v": 0.5})
        frame.to_parquet(tmp_path / f"part-{number}.parquet")
    with farhaul.serve(tmp_path, plain=True) as server:
        frame = frames.read_parquet(f"{server.url}part-*.parquet", columns=["t"], storage_options={"plain": True})
        # In this process: to import all of Dask's data frames takes each worker seconds.
        assert (frame.npartitions, frame.t.sum().compute(scheduler="sync")) == (2, sum(range(200)))


def test_the_examples_of_the_book_run(client, tmp_path):
    page = (Path(__file__).parents[2] / "docs/book/dask.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 3
    (tmp_path / "data").mkdir()
    for number in range(3):
        (tmp_path / f"data/run{number}.h5").write_bytes(b"measured")
    here = {
        "tcp://scheduler.example:8786": client.scheduler.address,
        "dtn1:/data": f"0:{tmp_path}/data",
        "archive1:/in": f"1:{tmp_path}/in",
    }
    names: dict[str, object] = {}
    for block in blocks:
        if "lab_sweep" in block and find_spec("farhaul.lab") is None:
            continue
        for name, its in here.items():
            block = block.replace(name, its)
        exec(compile(block, "dask.md", "exec"), names)
    names["client"].close()
    assert (tmp_path / "in/run2.h5").read_bytes() == b"measured"


@pytest.mark.timeout(150)
def test_three_sources_and_three_sinks_of_which_one_each_is_killed_behind_an_emulated_path(tmp_path):
    """Takes 15 s: six workers begin, and an eighth of a gigabyte crosses the path."""
    program = os.environ.get("FARHAUL_PROGRAM", "")
    if not os.access(program, os.X_OK):
        pytest.skip("the program farhaul is not built")
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun") or shutil.which("ip") is None:
        pytest.skip("networks with interfaces of their own need root, /dev/net/tun and ip")
    for interface in ("type veth", "type vxlan id 1 remote 127.0.0.1 dstport 4789"):
        add = ["unshare", "-n", "ip", "link", "add", "probe", *interface.split()]
        if subprocess.run(add, capture_output=True, check=False).returncode != 0:
            pytest.skip(f"the kernel makes no interface of {interface}")
    cluster = [sys.executable, str(Path(__file__).with_name("emulated_cluster.py"))]
    far = f"exec {' '.join(cluster)} far {tmp_path} > {tmp_path}/far.log 2>&1"
    emulate = [program, "emulate", "--quiet", "--rate", "1gbit", "--delay", "10ms", "--serve", far, "--"]
    done = subprocess.run([*emulate, *cluster, "near", str(tmp_path)], capture_output=True, text=True, timeout=120, check=False)
    logs = f"{done.stderr[-4000:]}\n{(tmp_path / 'far.log').read_text()[-2000:]}"
    assert done.returncode == 0, logs
    seen = json.loads(done.stdout.splitlines()[-1])
    assert all(seen["equal"]) and {row["status"] for row in seen["rows"]} == {"verified"}
    assert all(row["digest"] for row in seen["rows"])
    assert seen["rows"][0]["attempts"] == 2, "its worker was killed"
    assert seen["chunks_at_kill"] * MIB > 64 * MIB, "without going on, more would be sent twice"
    assert seen["resent_bytes"] <= 64 * MIB
    assert seen["left"] == []
    # Then a sink.
    [row] = seen["sink"]["rows"]
    assert (row["status"], seen["sink"]["equal"]) == ("verified", [True])
    assert row["attempts"] >= 2 and seen["sink"]["resent_bytes"] <= 8 * MIB


def test_a_worker_serves_at_one_port_again_and_again(client, files):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        at = f"127.0.0.1:{free.getsockname()[1]}"
    for number in range(3):
        pairs = files(0, 1, {str(number): 10})
        assert [file.status for file in farhaul.dask.copy(pairs, client, listen={"1": at})] == ["verified"]
