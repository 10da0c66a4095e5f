"""What all tests share: keys of their own, and nothing that is skipped in silence."""

import os
import signal
import sys
import tempfile
import threading

import pytest

# Before the package reads them: no test sees or changes the keys of the user.
_CONFIG = tempfile.mkdtemp(prefix="farhaul-tests-")
os.environ["XDG_CONFIG_HOME"] = _CONFIG
os.environ["HOME"] = _CONFIG
# Matplotlib makes its list of fonts once, and not for each run.
os.environ.setdefault("MPLCONFIGDIR", os.path.join(sys.prefix, "matplotlib"))

import farhaul  # noqa: E402

MUST_RUN = "FARHAUL_TESTS_MUST_RUN"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A test that would be skipped fails where everything must run."""
    outcome = yield
    report = outcome.get_result()
    if report.skipped and MUST_RUN in os.environ:
        report.outcome = "failed"


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
    """Sends Ctrl-C to this process after so many seconds."""
    timers = []

    def after(seconds):
        timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        timers.append(timer)

    yield after
    for timer in timers:
        timer.cancel()
        timer.join()


@pytest.fixture
def pair():
    """Two ends of an encrypted stream."""
    with farhaul.listen() as listener:
        near = farhaul.connect(listener.address)
        far = listener.accept(timeout=20)
        yield near, far
        near.abort()
        far.abort()
