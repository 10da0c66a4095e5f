"""Pairs of files between workers, and the tasks that they make."""

import pytest

pytest.importorskip("distributed")

import farhaul
from farhaul.dask._agent import outermost_of
from farhaul.dask._places import Place, Worker, workers_at
from farhaul.dask._plan import BATCH_FILES, batches, read_pairs

WORKERS = [
    Worker("tcp://192.0.2.1:4001", "dtn-1", "192.0.2.1", frozenset({"disk-a", "nic"})),
    Worker("tcp://192.0.2.1:4002", "dtn-2", "192.0.2.1", frozenset({"disk-a", "nic"})),
    Worker("tcp://192.0.2.2:4001", "3", "192.0.2.2"),
]


@pytest.mark.parametrize(
    ("end", "host", "path"),
    [
        ("dtn-1:/data/x", "dtn-1", "/data/x"),
        ("tcp://192.0.2.1:4001:/data/x", "tcp://192.0.2.1:4001", "/data/x"),
        ("tls://[2001:db8::7]:4001:/a:/b", "tls://[2001:db8::7]:4001", "/a:/b"),
        ("192.0.2.1:/data//x/../y", "192.0.2.1", "/data/y"),
        (("any:thing", "/with blank"), "any:thing", "/with blank"),
        ("udt://far.example:9000/in/", None, "udt://far.example:9000/in/"),
    ],
)
def test_an_end_names_a_worker_and_a_path_or_a_server(end, host, path):
    assert Place.read(end) == Place(host, path)


@pytest.mark.parametrize("end", ["/data/x", "dtn-1:data/x", "dtn-1", "", ("dtn-1", "data"), "s3://bucket/x", "dtn-1:/x\0"])
def test_other_ends_are_refused(end):
    with pytest.raises(farhaul.UsageError):
        Place.read(end)


def test_a_host_is_a_name_or_an_address_then_a_resource_or_a_machine():
    def found(host):
        return [worker.name for worker in workers_at(host, WORKERS)]

    assert found("dtn-1") == found("tcp://192.0.2.1:4001") == ["dtn-1"]
    assert found("disk-a") == found("192.0.2.1") == ["dtn-1", "dtn-2"]
    assert found("3") == ["3"]
    assert found("elsewhere") == []


def test_a_pair_needs_a_worker_and_a_sink_of_its_own():
    with pytest.raises(farhaul.UsageError, match="must be a path of a worker"):
        read_pairs([("udt://a:1/x", "udt://b:1/x")])
    with pytest.raises(farhaul.UsageError, match="have one sink"):
        read_pairs([("a:/x", "c:/z"), ("b:/y", "c:/./z")])
    assert [pair.runs_at for pair in read_pairs({"a:/x": "b:/x", "udt://s:1/y": "b:/y"})] == ["a", "b"]


def test_small_files_of_one_route_share_a_task_and_large_ones_have_their_own():
    pairs = read_pairs((f"a:/x{number}", f"b:/x{number}") for number in range(6))
    sizes = {0: 10, 1: 10, 2: 100, 3: 30, 4: 80}
    made = batches(pairs, sizes, batch_bytes=50)
    assert [[pair.index for pair in batch.pairs] for batch in made] == [[0, 1], [2], [3], [4], [5]]
    assert [batch.bytes for batch in made] == [20, 100, 30, 80, 0]
    many = read_pairs((f"a:/{number}", f"b:/{number}") for number in range(BATCH_FILES + 1))
    assert [len(batch.pairs) for batch in batches(many, {})] == [BATCH_FILES, 1]


def test_sources_begin_with_different_sinks():
    pairs = read_pairs((f"{source}:/x{sink}", f"{sink}:/from-{source}") for source in "abc" for sink in "xyz")
    first = [(batch.runs_at, batch.serves_at) for batch in batches(pairs, {})][:3]
    assert sorted(source for source, _ in first) == ["a", "b", "c"]
    assert sorted(sink for _, sink in first) == ["x", "y", "z"]


def test_a_server_permits_the_outermost_directories():
    assert outermost_of(["/a/b", "/a", "/a-b", "/ab", "/c/d", "/c/d/e", "/a/b"]) == ["/a-b", "/a", "/ab", "/c/d"]
    assert outermost_of(["/x", "/"]) == ["/"]
