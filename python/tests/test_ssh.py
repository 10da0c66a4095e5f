"""Hosts that ssh reaches, with a real sshd on loopback that has keys and settings of its own."""

import getpass
import os
import pathlib
import shutil
import socket
import subprocess
import time

import pytest

import farhaul

PROGRAM = os.environ.get("FARHAUL_PROGRAM", "")
SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")


@pytest.fixture(scope="module")
def ssh(tmp_path_factory):
    """Keyword arguments that reach an sshd of this user."""
    if not SSHD or not shutil.which("ssh"):
        pytest.skip("no OpenSSH with its sshd (Debian: apt-get install openssh-server)")
    if not os.access(PROGRAM, os.X_OK):
        pytest.skip("no farhaul program: FARHAUL_PROGRAM names it, as cargo xtask python does once it is built")
    folder = tmp_path_factory.mktemp("sshd")
    for name in ("host", "user", "stranger"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    if os.getuid() == 0:
        # Where its processes without rights live. The package has it only while its service runs.
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "home").mkdir()
    (folder / "config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\nPidFile none\n"
        "PermitRootLogin yes\nPasswordAuthentication no\nStrictModes no\nUsePAM no\n"
        f'ForceCommand cd {folder}/home && HOME={folder}/home XDG_CACHE_HOME={folder} sh -c "$SSH_ORIGINAL_COMMAND"\n'
    )
    with open(folder / "log", "wb") as log:
        sshd = subprocess.Popen([SSHD, "-D", "-e", "-f", folder / "config"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_for(port, sshd, folder / "log")
        options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "IdentitiesOnly=yes"]
        identity = {"ssh_identity": str(folder / "user")}
        yield {"ssh": ["ssh", "-F", "none"], "ssh_port": port, "ssh_options": options, "remote_path": PROGRAM, **identity}
    finally:
        sshd.terminate()
        sshd.wait(20)


def wait_for(port, sshd, log):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert sshd.poll() is None, log.read_text()
            time.sleep(0.02)
    raise AssertionError(log.read_text())


def test_copies_go_both_ways(ssh, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in "ab":
        (tree / name).write_bytes(os.urandom(300_000))
    host = f"{getpass.getuser()}@127.0.0.1"
    pushed = farhaul.copy(tree, f"{host}:{tmp_path}/there/", recursive=True, **ssh)
    assert (pushed.files, pushed.bytes, pushed.failed) == (2, 600_000, 0)
    report = farhaul.copy(f"{host}:{tmp_path}/there/tree/a", tmp_path / "back", **ssh)
    assert report.files == 1 and (tmp_path / "back").read_bytes() == (tree / "a").read_bytes()
    with pytest.raises(FileNotFoundError, match="missing"):
        farhaul.copy(f"{host}:{tmp_path}/missing", tmp_path / "back", **ssh)


def test_the_file_system_reads_and_writes(ssh, tmp_path):
    fsspec = pytest.importorskip("fsspec")
    here = f"farhaul+ssh://{getpass.getuser()}@127.0.0.1:{ssh['ssh_port']}"
    options = {name: value for name, value in ssh.items() if name != "ssh_port"}
    fs, _ = fsspec.url_to_fs(here + "/", **options)
    with fsspec.open(f"{here}{tmp_path}/deep/data.csv", "w", **options) as file:
        file.write("t,v\n1,2\n")
    assert (tmp_path / "deep/data.csv").read_text() == "t,v\n1,2\n"
    assert fs.cat_file(f"{tmp_path}/deep/data.csv", start=4) == b"1,2\n"
    assert fs.glob(f"{tmp_path}/deep/*.csv") == [f"{tmp_path}/deep/data.csv"]
    # Below the home of that user.
    fs.pipe_file("~/note", b"at home")
    assert fs.cat("~/note") == b"at home" and (pathlib.Path(ssh["ssh_identity"]).parent / "home/note").read_bytes() == b"at home"
    fs.rm(f"{tmp_path}/deep", recursive=True)
    assert not (tmp_path / "deep").exists()


def test_a_key_that_the_host_does_not_know_is_refused(ssh, tmp_path):
    stranger = {**ssh, "ssh_identity": str(pathlib.Path(ssh["ssh_identity"]).with_name("stranger"))}
    with pytest.raises(farhaul.Error, match="ssh cannot reach .* or log in there; try `ssh -F none -p") as caught:
        farhaul.copy(f"{getpass.getuser()}@127.0.0.1:{tmp_path}", tmp_path / "x", recursive=True, **stranger)
    assert caught.value.code == "SSH_FAILED"
