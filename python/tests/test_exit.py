"""The end of a process: it ends as Python ends it, whatever threads of the library and of the program do at that moment."""

import signal
import subprocess
import sys

import pytest

TIMES = 20
"""Processes for each way to end. Without the gate of the library, one of five is ended by a signal."""
AT_ONCE = 5

WORK = """
import asyncio, os, signal, sys, threading
import farhaul
from farhaul import cc

# Whoever tests in the background has children that ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

class Counts(cc.Controller):
    def on_ack(self, path, ack, control):
        self.acked = sum(range(200))

def connected(listener=farhaul.listen(plain=True)):
    near = farhaul.connect(listener.address, plain=True, controller=Counts)
    return near, listener.accept(timeout=20)

def daemon(work, *arguments):
    threading.Thread(target=work, args=arguments, daemon=True).start()

def write(stream):
    block = bytes(10_000)
    while True:
        stream.write(block)

def read(stream):
    while True:
        try:
            stream.read(100)
        except TimeoutError:
            pass

async def tasks(stream):
    async def read():
        while True:
            await stream.read_async(100)
    await asyncio.gather(*(read() for _ in range(20)))

near, busy = connected()
daemon(write, near)
daemon(read, busy)
other, silent = connected()
silent.timeout = 0.0001
daemon(read, silent)
third, awaited = connected()
daemon(write, third)
daemon(asyncio.run, tasks(awaited))
"""

ENDS = {
    "main": ("print('begun', flush=True)\n", 0),
    "exit": ("print('begun', flush=True)\nsys.exit(3)\n", 3),
    # A signal that comes just before a wait does not end it in Python, so the wait is a short one.
    "interrupt": ("print('begun', flush=True)\nwhile True:\n    threading.Event().wait(0.05)\n", -signal.SIGINT),
}


def ended(program, status):
    """The processes of this program that ended in another way."""
    others = []
    for _ in range(TIMES // AT_ONCE):
        running = [
            subprocess.Popen(
                [sys.executable, "-X", "faulthandler=0", "-c", program],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for _ in range(AT_ONCE)
        ]
        try:
            for process in running:
                assert process.stdout.readline() == b"begun\n", process.communicate()[1].decode()
                if status == -signal.SIGINT:
                    process.send_signal(signal.SIGINT)
            for process in running:
                words = process.communicate()[1].decode()
                if process.returncode != status:
                    others.append((process.returncode, words[-300:]))
        finally:
            for process in running:
                process.kill()
                process.communicate()
    return others


# Sixty processes take ten seconds.
@pytest.mark.parametrize("end", ENDS)
def test_a_process_ends_as_python_ends_it(end):
    words, status = ENDS[end]
    assert ended(WORK + words, status) == []


def test_a_child_that_was_forked_while_threads_worked_ends_by_itself():
    fork = """
child = os.fork()
if child == 0:
    # It has one thread, and no end of a connection.
    sys.exit(5)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
print('begun', flush=True)
"""
    assert ended(WORK + fork, 0) == []


AT_EXIT = """
import atexit, sys

def use():
    for fails in (lambda: fs.ls("/"), lambda: fs.open("/x"), lambda: file.write(bytes(10_000_000))):
        try:
            fails()
        except OSError as error:
            print(error.code)

atexit.register(use)
import farhaul.fsspec
fs = farhaul.fsspec.FarhaulFileSystem(sys.argv[1], int(sys.argv[2]))
# The program leaves it open in a way that nobody finds.
file = fs.open("/y", "wb")
farhaul._open_files._written.clear()
fs.ls("/")
"""


def test_a_function_that_uses_a_file_system_after_the_end_of_the_package_gets_an_error(server):
    ended = subprocess.run(
        [sys.executable, "-c", AT_EXIT, *server.address.split(":")], capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stdout) == (0, "FAILED\n" * 3), ended.stderr
