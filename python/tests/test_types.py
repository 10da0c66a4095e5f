"""Types: the stubs against the extension module, and the package against itself."""

import inspect
import os
import subprocess
import sys

import pytest

import farhaul

PROGRAM = """
import asyncio
import io
import farhaul

def shown(now: farhaul.Progress) -> None:
    print(now.bytes / (now.total_bytes or 1))

async def tasks() -> bytes:
    reader, writer = await farhaul.open_connection("far.example:9000", connect_timeout=2)
    writer.write(b"x")
    report = await farhaul.copy_async(["a", "b"], "udt://far.example:9000/", recursive=True, rate="1gbit")
    print(report.bytes)
    return await reader.read(10)

with farhaul.connect("far.example:9000", plain=True) as stream:
    count: int = stream.write(b"abc")
    lines: list[bytes] = io.BufferedReader(stream).readlines()
report: farhaul.Report = farhaul.copy("a", "b:c", progress=shown, ssh_port=2222)
"""


def test_help_and_completion_list_the_keyword_arguments_with_their_meanings():
    for function, name, meaning in [
        (farhaul.copy, "recursive", "recursive: Copy directories with their contents."),
        (farhaul.copy_async, "rate", "rate: "),
        (farhaul.connect, "host_key", "host_key: "),
        (farhaul.serve, "read_only", "read_only: Clients may not write."),
    ]:
        assert name in inspect.signature(function).parameters
        assert meaning in (inspect.getdoc(function) or ""), function
    assert list(inspect.signature(farhaul.copy).parameters)[:3] == ["src", "dst", "progress"]


def mypy(*arguments, tmp_path):
    environment = {**os.environ, "MYPY_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=300)
    return done.returncode, done.stdout + done.stderr


def test_the_package_is_typed_and_the_stubs_are_those_of_the_module(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(PROGRAM)
    code, words = mypy("mypy", "--strict", "-p", "farhaul", tmp_path=tmp_path)
    assert code == 0, words
    code, words = mypy("mypy", "--strict", "program.py", tmp_path=tmp_path)
    assert code == 0, words
    # Fields of a report are those of its record.
    (tmp_path / "allowed").write_text(r"farhaul\._farhaul\.Report\..*" + "\n")
    stubtest = ["mypy.stubtest", "farhaul._farhaul", "--ignore-missing-stub", "--allowlist", "allowed"]
    code, words = mypy(*stubtest, tmp_path=tmp_path)
    assert code == 0, words
    (tmp_path / "wrong.py").write_text('import farhaul\nreport = farhaul.copy("a", "b")\nprint(report.byts)\n')
    code, words = mypy("mypy", "--strict", "wrong.py", tmp_path=tmp_path)
    assert code == 1 and "byts" in words, words
    (tmp_path / "wrong.py").write_text('import farhaul\nfarhaul.copy("a", "b", recursiv=True)\n')
    code, words = mypy("mypy", "--strict", "wrong.py", tmp_path=tmp_path)
    assert code == 1 and "recursiv" in words, words
