"""Keyword arguments that several functions take. They have the names of the command line's options, with ``_`` for ``-``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict, Union

if TYPE_CHECKING:
    from .cc import Controller

Path = Union[str, "os.PathLike[str]"]


class ConnectionOptions(TypedDict, total=False):
    """Settings of connections. Times are in seconds."""

    plain: bool
    """Neither encrypt nor authenticate. Everybody on the path may read and change the data."""
    key: Path
    """Private key of this side. Default: ``~/.config/farhaul/key``, made on first use."""
    cipher: Literal["auto", "aes128", "aes256", "chacha20"]
    """Cipher of the connections. Default: the fastest on this processor."""
    host_key: str
    """The server's key: its fingerprint ``SHA256:…``, or the public key. Default: what known_hosts says."""
    host_key_policy: Literal["strict", "accept-new"]
    """What to do about a server whose key is not known. Default: refuse it."""
    authorized_keys: Path
    """For a listener: file of the keys of clients. Default: ``~/.config/farhaul/authorized_keys``."""
    any_client: bool
    """For a listener: admit clients with any key."""
    protocol: str
    """Wire protocol with its options. Default: ``udt``."""
    controller: str | Callable[[], Controller]
    """Congestion controller: a name with its options, or a class below `farhaul.cc.Controller`. Default: that of the protocol."""
    background: bool
    """Give way to all other traffic."""
    rate: int | str
    """Cap on the sending rate: bits per second, or words such as ``"500mbit"``."""
    mtu: int
    """Largest packet in bytes, IP and UDP headers included. Default: found by probes."""
    buffer: int | str
    """Cap on each buffer: bytes, or words such as ``"64MiB"``. Default: sized to the path."""
    path_memory: bool
    """Whether connections begin with what earlier ones found of their path. Default: yes."""
    timeout: float
    """Silence of the peer after which it is given up. Default: 30."""
    connect_timeout: float
    """Time after which an attempt to connect is given up. Default: 5."""


class SshOptions(ConnectionOptions, total=False):
    """Settings of connections, and of ssh."""

    ssh: str | Sequence[str]
    """Command that reaches the remote host. Default: ``ssh``."""
    ssh_port: int
    """Port of the SSH server."""
    ssh_identity: Path
    """Private key for ssh."""
    ssh_jump: str
    """Jump hosts on the way, with commas."""
    ssh_options: Sequence[str]
    """Options for ssh, as in its configuration file: ``NAME=VALUE``."""
    remote_path: str
    """Program on the remote host. Default: ``farhaul`` on its ``PATH``."""
    port_range: tuple[int, int]
    """First and last UDP port for the program there. Default: any."""
    install: Path
    """A ``farhaul`` program of this version for remote hosts that lack it."""
    no_fallback: bool
    """Fail if UDP is blocked, instead of going through the SSH connection."""


class CopyOptions(SshOptions, total=False):
    """Settings of copies."""

    recursive: bool
    """Copy directories with their contents."""
    archive: bool
    """Copy a whole tree: links, owners, modes, attributes and access control lists as well."""
    numeric_ids: bool
    """With ``archive``: keep the numbers of users and groups instead of their names."""
    flows: int | Literal["auto"]
    """Connections that carry the data together. Default: ``"auto"``."""
    give_up: float
    """After the connection was lost, try again until there was no progress for this time. Default: 0."""
    skip: Literal["size-time", "digest", "exists", "never"]
    """Files not to send, because the target has them. Default: those of the same size and time."""
    delete: bool
    """Remove from the target directories what the source lacks, once everything has arrived."""
    max_delete: int
    """Remove nothing if it would be more than so many entries."""
    dry_run: bool
    """Change nothing, and report what would change."""
    exclude: Sequence[str]
    """Leave out what matches, by the rules of a .gitignore file at the top of the copy."""
    include: Sequence[str]
    """Copy all the same what ``exclude`` matches."""
    verify: Literal["disk"]
    """Read each file again from the disk before it gets its name."""
    fsync: Literal["never", "file", "chunk"]
    """When files are synced to the disk. Default: before they get their names."""
    shard: str
    """Take one part of the files: ``"3/8"`` is the third of eight, which other runs divide among them."""
    allow_changing: bool
    """Accept a file that changes all the time as it was read last."""
    wait_for_space: bool
    """Wait up to 9 min while the disk of the target is full."""
    modify_window: float
    """Take times for the same that are no farther apart, in seconds. Default: 0, and the step of a file system that has one."""


class ServeOptions(ConnectionOptions, total=False):
    """Settings of servers."""

    read_only: bool
    """Clients may not write."""
    max_sessions: int
    """Sessions at a time. Default: 64."""
    idle_timeout: float
    """Time in which a session moves some bytes; 0 for no limit. Default: 900."""
