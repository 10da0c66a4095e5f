"""What all tests share: keys of their own, and nothing that is skipped in silence."""

import json
import os
import signal
import subprocess
import sys
import tempfile

import pytest

# Before the package reads them: no test sees or changes the keys of the user.
_CONFIG = tempfile.mkdtemp(prefix="farhaul-tests-")
os.environ["XDG_CONFIG_HOME"] = _CONFIG
os.environ["HOME"] = _CONFIG
# Matplotlib makes its list of fonts once, and not for each run.
os.environ.setdefault("MPLCONFIGDIR", os.path.join(sys.prefix, "matplotlib"))

import farhaul

MUST_RUN = "FARHAUL_TESTS_MUST_RUN"


OUTCOMES = "FARHAUL_TEST_OUTCOMES"
"""Names a file for a line of JSON about each test, which the test command reads."""


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A test that would be skipped fails where everything must run."""
    outcome = yield
    report = outcome.get_result()
    if report.skipped and MUST_RUN in os.environ:
        report.outcome = "failed"


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    """So does a file of tests."""
    outcome = yield
    report = outcome.get_result()
    if report.skipped and MUST_RUN in os.environ:
        report.outcome, report.longrepr = "failed", reason_of(report)


def pytest_collectreport(report):
    if not report.passed:
        tell(report.nodeid, report.outcome, 0.0, reason_of(report))


_seconds = {}
_ended = set()


def pytest_runtest_logreport(report):
    """A test has a report for its fixtures, for itself, and for what it leaves."""
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration
    # Of tests that are shared out, the process that collects tells.
    if "PYTEST_XDIST_WORKER" in os.environ or report.nodeid in _ended or (report.passed and report.when != "teardown"):
        return
    _ended.add(report.nodeid)
    tell(report.nodeid, report.outcome, _seconds[report.nodeid], reason_of(report))


def reason_of(report):
    """Why a test failed, or was skipped: in one line."""
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return next(iter(reversed(str(report.longrepr or "").strip().splitlines())), "")


def tell(name, outcome, seconds, reason):
    if OUTCOMES in os.environ:
        with open(os.environ[OUTCOMES], "a", encoding="utf-8") as file:
            file.write(json.dumps({"name": name, "outcome": outcome, "seconds": seconds, "reason": reason}) + "\n")


@pytest.fixture
def root(tmp_path):
    """The directory of a server."""
    path = tmp_path / "root"
    path.mkdir()
    return path


@pytest.fixture
def server(root):
    """A server of `root` for this user's own key."""
    with farhaul.serve(root) as server:
        yield server


@pytest.fixture
def interrupt():
    """Sends Ctrl-C to this process after so many seconds, whatever its own threads do."""
    senders = []
    # A script that runs the tests in the background has them ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def after(seconds):
        senders.append(subprocess.Popen(["sh", "-c", f"sleep {seconds}; kill -INT {os.getpid()}"]))

    yield after
    for sender in senders:
        sender.kill()
        sender.wait()
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def pair():
    """Two ends of an encrypted stream."""
    with farhaul.listen() as listener:
        near = farhaul.connect(listener.address)
        far = listener.accept(timeout=20)
        yield near, far
        near.abort()
        far.abort()
