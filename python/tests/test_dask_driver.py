"""The driver of copies on a cluster, with a cluster that does what the test says."""

import pytest

pytest.importorskip("distributed")

from farhaul.dask import _agent, _task
from farhaul.dask._agent import Served, Service
from farhaul.dask._cluster import Cluster
from farhaul.dask._driver import Driver, _Work
from farhaul.dask._places import workers_of
from farhaul.dask._plan import batches, read_pairs
from farhaul.dask._settings import Settings
from farhaul.dask._task import Outcome


class Future:
    def __init__(self, key, worker, job):
        self.key, self.worker, self.job = key, worker, job
        self.status = "pending"
        self._callbacks = []

    def add_done_callback(self, callback):
        self._callbacks.append(callback)

    def cancel(self):
        self.status = "cancelled"

    def result(self):
        return self._result

    def finish(self, *outcomes):
        self.status, self._result = "finished", list(outcomes)
        for callback in self._callbacks:
            callback(self)


class Dask:
    """A client whose workers, tasks and calls the test sees."""

    asynchronous = False

    def __init__(self, *names):
        self.tasks = []
        self.calls = []
        self.runs = 0
        self.names = {}
        for name in names:
            self.start(name)

    def start(self, name):
        self.names[f"tcp://192.0.2.1:{4000 + len(self.calls) + len(self.names)}"] = name

    def kill(self, name):
        self.names = {address: its for address, its in self.names.items() if its != name}

    def scheduler_info(self, n_workers):
        assert n_workers == -1, "all workers are wanted"
        return {"workers": {address: {"name": name} for address, name in self.names.items()}}

    def submit(self, function, job, *, key, workers, **options):
        assert function is _task.copy_batch and options["allow_other_workers"] is False
        [worker] = workers
        self.tasks.append(Future(key, self.names[worker], job))
        self.calls.append(("submit", self.names[worker]))
        return self.tasks[-1]

    def run(self, function, session, *arguments, workers, on_error):
        self.runs += 1
        self.calls.extend((function.__name__, self.names[worker], *arguments) for worker in workers)
        answers = {
            _agent.begin: lambda worker: f"key of {worker}",
            _agent.open_server: lambda worker: Served(f"{worker}/udp", "SHA256:it", "/"),
            _agent.open_servers: lambda worker: Served(f"{worker}/udp", "SHA256:it", "/"),
            _agent.end: lambda worker: 0,
        }
        return {worker: answers.get(function, lambda worker: None)(worker) for worker in workers}


def driver_of(dask, pairs, **settings):
    read = read_pairs(pairs)
    driver = Driver(read, dask, Settings(**settings), lambda said: None)
    driver._waiting = [_Work(batch) for batch in batches(read, {}, 1)]
    return driver


def step(driver):
    """One turn, with a look at the workers, and with everything due that waits."""
    driver._next_look = 0.0
    for work in driver._waiting:
        work.due = 0.0
    driver._step()


def done(future):
    future.finish(*(Outcome(item.index, "verified", bytes=1, moved_bytes=1) for item in future.job.items))


def broken(future, code="PEER_LOST"):
    future.finish(*(Outcome(item.index, "failed", code=code, error="broken", moved_bytes=5) for item in future.job.items))


PAIRS = [(f"source:/{number}", f"sink:/in/{number}") for number in range(5)]


@pytest.fixture
def large(monkeypatch):
    """Makes each pair a task of its own."""
    monkeypatch.setattr("farhaul.dask._plan.BATCH_FILES", 1)


def test_no_more_tasks_than_allowed_send_to_one_sink(large):
    dask = Dask("source", "sink")
    driver = driver_of(dask, PAIRS, per_sink=2)
    step(driver)
    assert len(dask.tasks) == 2
    done(dask.tasks[0])
    step(driver)
    step(driver)
    assert len(dask.tasks) == 3
    assert [call[0] for call in dask.calls].count("open_server") == 1


def test_the_sessions_of_a_lost_source_end_before_its_successor_begins():
    dask = Dask("source", "sink", "other")
    driver = driver_of(dask, PAIRS)
    step(driver)
    [address] = [address for address, name in dask.names.items() if name == "source"]
    driver._on_event((0.0, {"began": dask.tasks[0].job.batch}))
    dask.kill("source")
    step(driver)
    assert len(dask.tasks) == 1 and dask.tasks[0].status == "cancelled"
    assert dask.calls[-1] == ("revoke", "sink", f"key of {address}", 1)
    dask.start("source")
    step(driver)
    assert len(dask.tasks) == 2
    assert [call[0] for call in dask.calls[-3:]] == ["begin", "admit", "submit"]
    done(dask.tasks[1])
    step(driver)
    assert [file.attempts for file in driver._ledger.report(0)] == [2] * 5


def test_a_task_that_had_not_begun_when_its_worker_was_lost_has_failed_at_nothing():
    dask = Dask("source", "sink")
    driver = driver_of(dask, PAIRS, retries=0)
    step(driver)
    dask.kill("source")
    dask.start("source")
    step(driver)
    assert len(dask.tasks) == 2
    done(dask.tasks[1])
    step(driver)
    assert [(file.status, file.attempts) for file in driver._ledger.report(0)] == [("verified", 1)] * 5


def test_tasks_that_send_to_a_lost_sink_are_ended_and_begin_again_at_its_successor():
    dask = Dask("source", "sink")
    driver = driver_of(dask, PAIRS)
    step(driver)
    first = dask.tasks[0]
    dask.kill("sink")
    step(driver)
    assert dask.calls[-1] == ("cancel", "source", [first.job.batch])
    broken(first, "INTERRUPTED")
    step(driver)
    assert len(dask.tasks) == 1, "there is no sink"
    dask.start("sink")
    step(driver)
    assert dask.tasks[1].job.served.address != first.job.served.address
    done(dask.tasks[1])
    step(driver)
    assert driver._moved_bytes == 25, "the lost server cannot tell what it has received"
    assert driver._sent_to.total() == 5


def test_attempts_end_with_their_number_and_at_once_with_what_another_one_would_repeat():
    dask = Dask("source", "sink")
    driver = driver_of(dask, PAIRS[:1], retries=1)
    for number in range(2):
        step(driver)
        broken(dask.tasks[number])
        step(driver)
    assert not driver._waiting and not driver._running
    [file] = driver._ledger.report(0)
    assert (file.status, file.code, file.attempts, file.moved_bytes) == ("failed", "PEER_LOST", 2, 10)

    driver = driver_of(dask, PAIRS[:1])
    step(driver)
    broken(dask.tasks[2], "NOT_FOUND")
    step(driver)
    assert not driver._waiting and [file.attempts for file in driver._ledger.report(0)] == [1]


def test_a_sink_serves_its_own_directories_where_it_is_told():
    pairs = read_pairs([("a:/x", "sink:/in/y"), ("a:/y", "sink:/in/deep/y"), ("a:/z", "other:/z")])
    settings = Settings(listen={"sink": "10.1.0.7:9000"}, options={"rate": "1gbit", "recursive": True, "delete": True})
    dask = Dask("a", "sink", "other")
    cluster = Cluster(dask, "session", pairs, settings)
    cluster.look()
    services = {worker.name: cluster._service(address) for address, worker in workers_of(dask.scheduler_info(-1)).items()}
    assert services["sink"] == Service(("/in", "/in/deep"), "10.1.0.7:9000", {"rate": "1gbit"}, may_delete=True)
    assert services["other"] == Service(("/",), "192.0.2.1:0", {"rate": "1gbit"}, may_delete=True)


def test_ten_sources_and_ten_sinks_are_prepared_by_two_calls(large):
    names = [f"{kind}{number}" for kind in ("source", "sink") for number in range(10)]
    dask = Dask(*names)
    pairs = [(f"source{one}:/{other}", f"sink{other}:/in/{one}") for one in range(10) for other in range(10)]
    driver = driver_of(dask, pairs)
    driver._cluster.look()
    driver._cluster.prepare_all()
    assert dask.runs == 2
    step(driver)
    assert len(dask.tasks) == 100 and [call[0] for call in dask.calls if call[0] in ("admit", "open_server")] == []
    opened = [call for call in dask.calls if call[0] == "open_servers"]
    assert len(opened) == 10 and all(len(keys) == 10 for _, keys in opened[0][2].values())
