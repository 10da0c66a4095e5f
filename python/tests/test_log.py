"""The logger ``farhaul``."""

import logging
import subprocess
import sys
import threading
import time

import pytest

import farhaul


def said(caplog, level):
    return [record.getMessage() for record in caplog.records if record.name == "farhaul" and record.levelno == level]


def test_the_package_configures_nothing():
    # In a process of its own: other tests have loggers, too.
    program = """
import logging
import farhaul
farhaul.listen("127.0.0.1:0", plain=True).close()
logger = logging.getLogger("farhaul")
print([type(handler).__name__ for handler in logger.handlers], logger.level == logging.NOTSET, logging.root.handlers)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("['NullHandler'] True []\n", "")


def test_a_connection_is_logged_once_and_not_its_bytes(caplog):
    caplog.set_level(logging.DEBUG, "farhaul")
    with farhaul.listen("127.0.0.1:0", plain=True) as listener:
        accepting = threading.Thread(target=lambda: listener.accept(timeout=10).readall())
        accepting.start()
        with farhaul.connect(listener.address, plain=True) as stream:
            stream.write(b"x" * 1_000_000)
        accepting.join()
    # Not the warnings: a stream that another test left may be collected here.
    messages = said(caplog, logging.DEBUG)
    assert messages.count(f"connected to {listener.address}") == 1 and len(messages) <= 4


def test_a_lost_connection_of_a_file_system_is_a_warning(caplog, root):
    fsspec = pytest.importorskip("fsspec")
    caplog.set_level(logging.DEBUG, "farhaul")
    (root / "x").write_bytes(b"content")
    with farhaul.serve(root) as server:
        fs = fsspec.filesystem("udt", host="127.0.0.1", port=int(server.address.split(":")[1]), connect_timeout=0.3)
        assert fs.cat("/x") == b"content"
        assert said(caplog, logging.DEBUG) == [f"connecting to {server.address}"] and not said(caplog, logging.WARNING)
    with pytest.raises(OSError):
        fs.cat("/x")
    assert any(server.address in line for line in said(caplog, logging.WARNING))


def test_the_next_attempt_of_a_copy_is_a_warning_while_it_waits(caplog, tmp_path):
    (tmp_path / "x").write_bytes(b"x" * 4_000_000)
    (tmp_path / "to").mkdir()
    server = farhaul.serve(tmp_path / "to")
    copying = threading.Thread(
        target=lambda: pytest.raises(OSError, farhaul.copy, tmp_path / "x", server.url, rate="4mbit", give_up=3)
    )
    copying.start()
    time.sleep(1)
    server.close()
    copying.join()
    assert any("next attempt follows" in line for line in said(caplog, logging.WARNING))


def test_an_interrupt_while_a_line_is_logged_ends_the_wait():
    program = """
import logging, signal, socket
import farhaul

class Interrupts(logging.Handler):
    def emit(self, record):
        signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
logging.getLogger("farhaul").addHandler(Interrupts())
logging.getLogger("farhaul").setLevel(logging.DEBUG)
silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
silent.bind(("127.0.0.1", 0))
try:
    farhaul.connect("127.0.0.1:%d" % silent.getsockname()[1], plain=True, connect_timeout=50)
except KeyboardInterrupt:
    print("interrupted")
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=40)
    assert (ran.stdout, ran.stderr) == ("interrupted\n", "")
