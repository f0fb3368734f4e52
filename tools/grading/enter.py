"""Go into a sandbox and become the program that is to run there.

Called as ``python -I -S enter.py SPECIFICATION COMMAND...``, by `sandbox.Sandbox` alone, with the
fields of `sandbox.Entry` as JSON. Nothing but the standard library is imported: every kernel waits
for this.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import struct
import sys
from typing import Any

# From the headers of Linux: prctl.h, capability.h, landlock.h.
PR_SET_PDEATHSIG, PR_SET_KEEPCAPS, PR_SET_NO_NEW_PRIVS = 1, 8, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 47, 2
CAP_DAC_READ_SEARCH = 2
CAPABILITY_VERSION_3 = 0x20080522
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
ACCESS_FILES = (1 << 13) - 1  # all that the first version knows
ACCESS_READ = 0b1101  # execute, read files, read folders
ACCESS_READ_FILE, ACCESS_WRITE_FILE = 0b100, 0b10
ACCESS_BY_VERSION = {2: 1 << 13, 3: 1 << 14, 5: 1 << 15}  # link elsewhere, truncate, ioctl
NETWORK_TCP = 0b11  # bind and connect, from version 4
SCOPED = 0b11  # abstract sockets and signals, from version 6

libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def limit(memory: int, file_bytes: int, processes: int) -> None:
    """Set limits on this process and its children; let the system run out of them first."""
    for what, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NPROC, processes),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def become(uid: int) -> None:
    """Be a user that nobody else is, and die with the process that started this one.

    The one capability that is kept opens for reading what only root may read (a Python in root's
    home), as far as Landlock allows.
    """
    parent = os.getppid()
    with open("/proc/self/status") as file:
        held = next(int(line.split()[1], 16) for line in file if line.startswith("CapPrm"))
    kept = held & (1 << CAP_DAC_READ_SEARCH)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    _checked(libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), "PR_SET_KEEPCAPS")
    os.setresuid(uid, uid, uid)
    head = struct.pack("Ii", CAPABILITY_VERSION_3, 0)
    sets = struct.pack("6I", kept, kept, kept, 0, 0, 0)
    _checked(libc.capset(head, sets), "capset")
    if kept:
        raised = libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH, 0, 0)
        _checked(raised, "PR_CAP_AMBIENT_RAISE")
    _checked(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "PR_SET_PDEATHSIG")
    if os.getppid() != parent:
        os._exit(1)


def restrict(readable: list[str], writable: list[str], devices: list[str]) -> None:
    """Keep this process and its children from all other files, and from TCP, with Landlock."""
    version = _checked(libc.syscall(LANDLOCK_CREATE_RULESET, None, 0, 1), "Landlock")
    files = ACCESS_FILES | sum(bit for since, bit in ACCESS_BY_VERSION.items() if version >= since)
    # Older kernels know a prefix of the structure and accept the rest if it is zero.
    attributes = struct.pack(
        "QQQ", files, NETWORK_TCP if version >= 4 else 0, SCOPED if version >= 6 else 0
    )
    made = libc.syscall(LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    ruleset = _checked(made, "landlock_create_ruleset")
    rules = [(path, ACCESS_READ) for path in readable]
    rules += [(path, files) for path in writable]
    rules += [(path, ACCESS_READ_FILE | ACCESS_WRITE_FILE) for path in devices]
    for path, access in rules:
        if not os.path.isdir(path):
            access &= ~0b1000  # a file has no entries to read
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = struct.pack("=Qi", access, opened)
        _checked(libc.syscall(LANDLOCK_ADD_RULE, ruleset, 1, rule, 0), f"allowing {path}")
        os.close(opened)
    _checked(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS")
    _checked(libc.syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)


def enter(entry: dict[str, Any], command: list[str]) -> None:
    """Do what `entry` says and execute `command`; does not return."""
    log = os.open(entry["log"], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    nothing = os.open(os.devnull, os.O_RDWR)
    for old, new in ((nothing, 0), (nothing, 1), (log, 2)):
        os.dup2(old, new)
    limit(entry["memory"], entry["file_bytes"], entry["processes"])
    if entry["uid"] is not None:
        become(entry["uid"])
        restrict(entry["readable"], [entry["private"]], entry["devices"])
        os.chdir(entry["home"])
    os.execve(command[0], command, entry["environment"])


if __name__ == "__main__":
    enter(json.loads(sys.argv[1]), sys.argv[2:])
