"""How a fork of the zygote confines itself: namespaces, mounts, descriptors, limits, capabilities, the seccomp filter.

All raw system calls are in this file. Every function does what it says or raises; there is no weaker fallback.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

INNER_ID = 1000
SCRATCH = "/sandbox"
HIDDEN = "/run"  # the parent of mounts that only the zygote needs
CHANNEL = 3
QUEUED_SIGNALS = 128  # all sandboxes share the limit of the zygote's user

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
CLONE_CHILD_CLEARTID = 0x00200000
CLONE_CHILD_SETTID = 0x01000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_KEEPCAPS = 8
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_SECUREBITS = 28
PR_SET_NO_NEW_PRIVS = 38
PR_GET_TID_ADDRESS = 40
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
SECCOMP_MODE_FILTER = 2
# Set and locked: NOROOT, NO_SETUID_FIXUP, NO_CAP_AMBIENT_RAISE; locked: KEEP_CAPS (off).
SECUREBITS = 0b1110_1111
CAP_SETGID, CAP_SETUID = 6, 7
CAPABILITY_VERSION_3 = 0x20080522
KEYCTL_JOIN_SESSION_KEYRING = 1

# Per architecture: syscall numbers, and the order of clone's last two arguments, (child_tid, tls) or (tls, child_tid).
_SYSCALLS = {"x86_64": {"clone": 56, "keyctl": 250}, "aarch64": {"clone": 220, "keyctl": 219}}[platform.machine()]
_TLS_COMES_FIRST = platform.machine() == "aarch64"

LAST_CAPABILITY = int(Path("/proc/sys/kernel/cap_last_cap").read_text())  # a sandbox has no /proc/sys
_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]
_libc.prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong]
_libc_holding_gil = ctypes.PyDLL(None, use_errno=True)  # for calls that must not release the GIL
_libc_holding_gil.syscall.restype = ctypes.c_long


@dataclass(frozen=True)
class Limits:
    """The limits of each process of one sandbox. The cgroup limits all of them together."""

    memory_bytes: int
    scratch_bytes: int
    file_bytes: int
    open_files: int
    processes: int | None  # None: the pids cgroup counts them
    baseline_bytes: int  # what the zygote has mapped, and so every fork


# For the zygote


def become_unprivileged(uid: int, gid: int) -> None:
    """Give up root permanently, except for the right to choose the users of sandboxes. Forks lose that right too.

    First mount a fresh /proc: as root, bwrap masks parts of its /proc, and then the kernel refuses sandboxes their own.
    """
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    drop_bounding_set()
    os.setgroups([])
    prctl(PR_SET_KEEPCAPS, 1)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    drop_capabilities(keep=(CAP_SETGID, CAP_SETUID))


def settle_zygote() -> None:
    """Restore what a change of user resets: ownership of /proc/self, and the signal on the parent's death."""
    prctl(PR_SET_DUMPABLE, 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    # An empty session keyring instead of the host's. Some kernels have no keyrings, so a failure is ignored.
    _libc.syscall(ctypes.c_long(_SYSCALLS["keyctl"]), ctypes.c_long(KEYCTL_JOIN_SESSION_KEYRING), None)


def create_fork() -> Callable[[], int]:
    """Return a fork() whose child is process 1 of a new pid namespace, with every capability in a new user namespace.

    It is the bare clone call: unshare() needs two forks, which copy the page tables of the whole stack twice, and glibc's
    fork takes no flags. What glibc and Python do around a fork is for programs with threads, and the zygote has checked
    that it has none; Python's part would write to a megabyte of pages that all sandboxes can share. The kernel refreshes
    the cached thread id, which locks compare, as it does for glibc.
    """
    address = ctypes.c_void_p()
    prctl(PR_GET_TID_ADDRESS, ctypes.addressof(address))
    flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | signal.SIGCHLD
    tail = (0, address.value) if _TLS_COMES_FIRST else (address.value, 0)
    arguments = [ctypes.c_long(value) for value in (_SYSCALLS["clone"], flags, 0, 0, *tail)]

    def fork() -> int:
        pid: int = _libc_holding_gil.syscall(*arguments)
        if pid < 0:
            raise _last_error("clone")
        return pid

    return fork


def map_user(pid: int, outer_uid: int, outer_gid: int) -> None:
    """Map uid 1000 of a fork's user namespace to a user of the host. One that is not the zygote's own needs its capabilities."""
    write_once(f"/proc/{pid}/setgroups", "deny")
    write_once(f"/proc/{pid}/uid_map", f"{INNER_ID} {outer_uid} 1")
    write_once(f"/proc/{pid}/gid_map", f"{INNER_ID} {outer_gid} 1")


# For the sandbox, in this order


def join_cgroups(paths: list[str]) -> None:
    """Move this process into the cgroups of its lease. It has one thread, so `tasks` of cgroup v1 is enough."""
    for path in paths:
        write_once(path, "0")


def enter_namespaces() -> None:
    """Become uid 1000 of the new user namespace, and enter new namespaces of every other kind."""
    os.setresgid(INNER_ID, INNER_ID, INNER_ID)
    os.setresuid(INNER_ID, INNER_ID, INNER_ID)
    os.unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)
    socket.sethostname("sandbox")


def arrange_mounts(scratch_bytes: int) -> None:
    """Mount one tmpfs for everything writable, so that its size limits all of it. The rest stays read-only."""
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    files = max(4096, scratch_bytes >> 13)
    mount("scratch", HIDDEN, "tmpfs", MS_NOSUID | MS_NODEV, f"size={scratch_bytes},nr_inodes={files},mode=0700")
    for name, target, mode in (("sandbox", SCRATCH, 0o700), ("tmp", "/tmp", 0o1777), ("shm", "/dev/shm", 0o1777)):
        directory = f"{HIDDEN}/{name}"
        Path(directory).mkdir()
        Path(directory).chmod(mode)
        mount(directory, target, None, MS_BIND)
    # Processes only: the other files of /proc (cmdline, interrupts, diskstats, pressure, and new ones) are about the host.
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "subset=pid")
    mount("empty", HIDDEN, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,nr_inodes=1,mode=0755")
    os.umask(0o022)
    os.chdir(SCRATCH)
    Path("out/images").mkdir(parents=True)


def set_limits(limits: Limits) -> None:
    """Set the rlimits, soft and hard."""
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_MEMLOCK, 65536)
    _limit(resource.RLIMIT_MSGQUEUE, 0)
    _limit(resource.RLIMIT_SIGPENDING, QUEUED_SIGNALS)
    _limit(resource.RLIMIT_RTPRIO, 0)
    _limit(resource.RLIMIT_NICE, 0)
    _limit(resource.RLIMIT_FSIZE, limits.file_bytes)
    _limit(resource.RLIMIT_NOFILE, limits.open_files)
    # So that one giant allocation raises a MemoryError instead of getting the process killed.
    _limit(resource.RLIMIT_DATA, limits.memory_bytes + limits.baseline_bytes)
    if limits.processes is not None:
        _limit(resource.RLIMIT_NPROC, limits.processes)


def keep_only_channel(channel: int) -> None:
    """Make the channel descriptor 3, and 0, 1 and 2 /dev/null. Close all others."""
    null = os.open("/dev/null", os.O_RDWR)
    if channel != CHANNEL:
        if null == CHANNEL:
            null = os.dup(null)
        os.dup2(channel, CHANNEL, inheritable=False)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.closerange(CHANNEL + 1, 1 << 30)


def drop_privileges() -> None:
    """Empty every capability set permanently."""
    prctl(PR_SET_SECUREBITS, SECUREBITS)
    drop_bounding_set()
    drop_capabilities()
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(PR_SET_DUMPABLE, 1)  # /proc/self must belong to this process until the monitor clears the flag


def install_filter(program: bytes) -> None:
    """Install the seccomp filter: an array of struct sock_filter."""

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))

    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(Program(len(program) // 8, program)))


# System calls


def prctl(option: int, *arguments: int) -> None:
    """Call prctl, with zeros for missing arguments."""
    padded = [*arguments, 0, 0, 0, 0][:4]
    if _libc.prctl(option, *padded) < 0:
        raise _last_error(f"prctl {option}")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Call mount."""
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    if _libc.mount(*texts[:3], flags, texts[3]) < 0:
        raise _last_error(f"mount {target}")


def drop_bounding_set() -> None:
    """Remove every capability that this kernel knows from the bounding set."""
    for capability in range(LAST_CAPABILITY + 1):
        prctl(PR_CAPBSET_DROP, capability)


def drop_capabilities(keep: tuple[int, ...] = ()) -> None:
    """Empty the ambient and inheritable sets, and the permitted and effective ones except for `keep`."""
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    kept = sum(1 << capability for capability in keep)
    sets = (ctypes.c_uint32 * 6)(kept, kept)  # effective, permitted and inheritable, then the upper halves
    if _libc.capset(header, sets) < 0:
        raise _last_error("capset")


def write_once(path: str, text: str) -> None:
    """Write with a single system call, as kernel files require."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _limit(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, value))


def _last_error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")
