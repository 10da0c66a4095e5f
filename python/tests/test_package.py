"""The package as it is installed."""

import errno
import pickle
import re

import farhaul
from farhaul import _errors


def test_it_has_a_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", farhaul.__version__)


def test_every_failure_is_an_os_error_with_its_code_and_the_class_of_python():
    missing = _errors._error("NOT_FOUND", "no such file", "look elsewhere", None)
    assert isinstance(missing, FileNotFoundError) and isinstance(missing, farhaul.Error)
    assert (missing.code, missing.errno) == ("NOT_FOUND", errno.ENOENT)
    assert str(missing) == "no such file; look elsewhere"
    assert isinstance(_errors._error("PEER_LOST", "gone", None, None), ConnectionError)
    assert isinstance(_errors._error("CONNECT_TIMEOUT", "silence", None, None), TimeoutError)


def test_errors_are_pickled_with_their_code():
    error = pickle.loads(pickle.dumps(_errors._error("DISK_FULL", "full", "make room", None)))
    assert (error.code, error.errno, error.remedy) == ("DISK_FULL", errno.ENOSPC, "make room")
