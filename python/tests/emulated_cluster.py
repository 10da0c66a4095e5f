"""A Dask cluster behind an emulated path: workers in network namespaces, each with an interface of its own.

::

    farhaul emulate --serve 'emulated_cluster.py far DIR' -- emulated_cluster.py near DIR

      source0 ─┐                                                   ┌─ sink0
      source1 ─┤ near host, scheduler ══ emulated path ══ far host ├─ sink1
      source2 ─┘                                                   └─ sink2

The path carries packets between its two hosts alone, so those of the workers cross it in VXLAN.

The program of the near host copies files from all sources to all sinks, kills ``source0`` in the middle of its largest one, and starts a
successor. Then it does the same to ``sink1`` with another file. It prints what it saw as JSON.

With ``vanish source`` or ``vanish sink`` after DIR, it cuts a host off instead, whose packets are dropped from then on, and prints what
became of its file. With ``vanish source spare``, a worker of that name begins on another host then. With ``vanish source back``, the host is
there again after ten seconds. That takes up to a minute, so no test does it.
"""

from __future__ import annotations

import asyncio
import ctypes
import filecmp
import glob
import json
import os
import signal
import subprocess
import sys
import threading
import time

SCHEDULER = "tcp://10.79.0.1:8786"
SIDES = {"near": ("10.78.1", "10.78.2", "source"), "far": ("10.78.2", "10.78.1", "sink")}
NUMBERS = {"near": (1, 2), "far": (2, 1)}
MTU = 1450
"""What VXLAN leaves of 1500 bytes."""
MIB = 1 << 20
LARGE, SMALL = 104 * MIB, 2 * MIB
KILL_AT = 66
"""Chunks of 1 MiB of the large file that have arrived: more than may be sent twice."""
RATE = "300mbit"
"""Leaves a second between this number and the last one, on a machine that is busy."""
SECOND, SECOND_AT = 24 * MIB, 8
"""The file whose sink is killed, and chunks of it by then."""
SECOND_RATE = "100mbit"
CUT, SPARE = 2, 3
"""The host that is cut off, and the one where its worker may begin again."""
RECORD = 48
"""Bytes of the journal for each chunk."""
_NEWNET, _NEWNS = 0x40000000, 0x00020000


def ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True)


def own_proc() -> None:
    """Shows this process its own /proc: hosts of the emulator number their processes anew, and Dask looks there for its own."""
    if ctypes.CDLL(None, use_errno=True).unshare(_NEWNS) != 0:
        raise OSError("no namespace for mounts")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "proc", "proc", "/proc"], check=True)


def namespace() -> str:
    return os.readlink("/proc/self/ns/net")


def host(prefix: str, number: int) -> int:
    """Starts a process in a namespace of its own, with an interface whose other end is here. Returns its id, and 0 in itself."""
    outer = namespace()
    made, make = os.pipe()
    if (process := os.fork()) == 0:
        os.close(made)
        if ctypes.CDLL(None, use_errno=True).unshare(_NEWNET) != 0 or namespace() == outer:
            os._exit(1)
        ip("link set lo up")
        ip(f"link add eth0 mtu {MTU} type veth peer name w{number} mtu {MTU} netns {os.getppid()}")
        ip(f"addr add {prefix}.{number + 1}/32 dev eth0")
        ip("link set eth0 up")
        ip(f"route add {prefix}.254/32 dev eth0")
        ip(f"route add default via {prefix}.254")
        os.write(make, b"!")
        return 0
    os.close(make)
    if os.read(made, 1) != b"!":
        raise OSError(f"no namespace for {prefix}.{number + 1}")
    ip(f"addr add {prefix}.254/32 dev w{number}")
    ip(f"link set w{number} up")
    ip(f"route add {prefix}.{number + 1}/32 dev w{number}")
    return process


def wait_for(what: object, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():  # type: ignore[operator]
        if time.monotonic() > deadline:
            raise TimeoutError("what the test waits for did not happen")
        time.sleep(0.02)


def worker(name: str, address: str, directory: str) -> None:
    """Runs a worker until it is killed."""
    from distributed import Worker

    async def run() -> None:
        while True:
            made = Worker(SCHEDULER, name=name, nthreads=1, host=address, resources={"nic": 1}, local_directory=directory)
            try:
                await made
                break
            except RuntimeError:  # Dask takes no second worker of a name, until it has missed the first one.
                await asyncio.sleep(1)
        await made.finished()

    asyncio.run(run())
    os._exit(0)


def workers(side: str, directory: str, with_successor: int) -> tuple[list[int], int]:
    """Starts the three workers of a side. Returns their processes, and where a byte starts the successor of this one."""
    prefix, other, kind = SIDES[side]
    if os.environ.get("FARHAUL_HOST") != side:
        raise OSError("this is no host of the emulator, whose network may be changed")
    own_proc()

    import distributed  # noqa: F401  Once, before the processes divide, and in its own /proc, where it looks for its process.

    with open("/proc/sys/net/ipv4/ip_forward", "w") as forward:
        forward.write("1")
    mine, its = NUMBERS[side]
    ip(f"link add path type vxlan id 1 local 10.77.0.{mine} remote 10.77.0.{its} dstport 4789")
    ip(f"addr add 10.79.0.{mine}/24 dev path")
    ip("link set path up")
    ip(f"route add {other}.0/24 via 10.79.0.{its}")
    begins_successor, begin_successor = os.pipe()
    processes = []
    for number in range(4):
        process = host(prefix, number)
        if process == 0:
            folder, address = f"{directory}/dask-{kind}{number}", f"{prefix}.{number + 1}"
            if number == SPARE:
                wait_for(lambda: os.path.exists(f"{directory}/{side}-spare"), 300)
                number = CUT
            elif number == with_successor and os.fork() == 0:
                folder += "-successor"
                os.read(begins_successor, 1)
            worker(f"{kind}{number}", address, folder)
        processes.append(process)
    return processes, begin_successor


def replace(process: int, begin_successor: int) -> None:
    os.kill(process, signal.SIGKILL)
    os.write(begin_successor, b"!")


def chunks(directory: str, sink: int, name: str) -> int:
    """How many chunks of an incomplete file have arrived."""
    journals = glob.glob(f"{directory}/sink{sink}/.{name}.*.fhjournal")
    return max((os.path.getsize(journal) for journal in journals), default=0) // RECORD


def tell_far(directory: str, what: str) -> None:
    with open(f"{directory}/far-shall-{what}", "w"):
        pass


def far(directory: str) -> None:
    processes, begin_successor = workers("far", directory, 1)
    while True:
        if os.path.exists(f"{directory}/far-shall-kill"):
            os.unlink(f"{directory}/far-shall-kill")
            replace(processes[1], begin_successor)
        if os.path.exists(f"{directory}/far-shall-cut"):
            os.unlink(f"{directory}/far-shall-cut")
            ip(f"link set w{CUT} down")
        time.sleep(0.02)


def one_file(directory: str, source: int, sink: int, size: int) -> tuple[str, str]:
    """Makes a file, and returns its pair."""
    name = f"alone{source}to{sink}"
    os.makedirs(f"{directory}/source{source}", exist_ok=True)
    with open(f"{directory}/source{source}/{name}", "wb") as file:
        file.write(os.urandom(size))
    return f"source{source}:{directory}/source{source}/{name}", f"sink{sink}:{directory}/sink{sink}/{name}"


def are_equal(pairs: list[tuple[str, str]]) -> list[bool]:
    return [filecmp.cmp(source.partition(":")[2], sink.partition(":")[2], shallow=False) for source, sink in pairs]


def kill_sink(directory: str, client: object) -> dict[str, object]:
    import farhaul.dask

    pair = one_file(directory, 1, 1, SECOND)

    def kill() -> None:
        wait_for(lambda: chunks(directory, 1, "alone1to1") >= SECOND_AT)
        tell_far(directory, "kill")

    killer = threading.Thread(target=kill)
    killer.start()
    report = farhaul.dask.copy([pair], client, resources={"nic": 1}, errors="collect", rate=SECOND_RATE)  # type: ignore[arg-type]
    killer.join()
    return {"rows": report.rows(), "seconds": report.seconds, "resent_bytes": report.resent_bytes, "equal": are_equal([pair])}


def vanish(directory: str, client: object, which: str, what_then: str | None) -> dict[str, object]:
    import farhaul.dask

    pair = one_file(directory, 2, 2, 4 * SECOND)
    cut: dict[str, float] = {}

    def drop() -> None:
        wait_for(lambda: chunks(directory, 2, "alone2to2") >= SECOND_AT)
        cut["at"] = time.monotonic()
        if which == "source":
            ip(f"link set w{CUT} down")
        else:
            tell_far(directory, "cut")
        if what_then == "spare":
            side = "near" if which == "source" else "far"
            with open(f"{directory}/{side}-spare", "w"):
                pass
        elif what_then == "back":
            time.sleep(10)
            ip(f"link set w{CUT} up")
            # The routes went with the link.
            ip(f"route replace 10.78.1.{CUT + 1}/32 dev w{CUT}")

    dropper = threading.Thread(target=drop)
    dropper.start()
    report = farhaul.dask.copy([pair], client, resources={"nic": 1}, errors="collect", rate=SECOND_RATE, patience=20)  # type: ignore[arg-type]
    dropper.join()
    seconds = time.monotonic() - cut["at"]
    return {"rows": report.rows(), "seconds_after": seconds, "resent_bytes": report.resent_bytes}


def near(directory: str, vanishing: list[str]) -> dict[str, object]:
    processes, begin_successor = workers("near", directory, 0)

    from distributed import Client, LocalCluster

    import farhaul.dask

    pairs = []
    for source in range(3):
        os.makedirs(f"{directory}/source{source}")
        for sink in range(3):
            name = f"from{source}to{sink}"
            with open(f"{directory}/source{source}/{name}", "wb") as file:
                file.write(os.urandom(MIB) * ((LARGE if (source, sink) == (0, 0) else SMALL) // MIB))
            pairs.append((f"source{source}:{directory}/source{source}/{name}", f"sink{sink}:{directory}/sink{sink}/{name}"))

    killed: dict[str, float] = {}

    def kill() -> None:
        wait_for(lambda: chunks(directory, 0, "from0to0") >= KILL_AT, 60)
        killed["chunks"] = chunks(directory, 0, "from0to0")
        replace(processes[0], begin_successor)

    with (
        LocalCluster(n_workers=0, host="10.79.0.1", scheduler_port=8786, dashboard_address="10.79.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(6, timeout=30)
        if vanishing:
            return vanish(directory, client, vanishing[0], vanishing[1] if vanishing[1:] else None)
        killer = threading.Thread(target=kill)
        killer.start()
        report = farhaul.dask.copy(pairs, client, resources={"nic": 1}, errors="collect", rate=RATE)
        killer.join()
        left = glob.glob(f"{directory}/sink*/.*")
        seen = {
            "rows": report.rows(),
            "seconds": report.seconds,
            "bytes": report.bytes,
            "moved_bytes": report.moved_bytes,
            "resent_bytes": report.resent_bytes,
            "chunks_at_kill": killed["chunks"],
            "equal": are_equal(pairs),
            "left": left,
            "sink": kill_sink(directory, client),
        }
    return seen


def main() -> None:
    side, directory, *rest = sys.argv[1:]
    if side == "far":
        # The emulator waits until this program has ended, and ends what it leaves behind once the other side has.
        if os.fork() == 0:
            far(directory)
        return
    print(json.dumps(near(directory, rest[1:])), flush=True)


main()
