"""A place where a stranger's code runs and harms nobody.

A sandbox shows a program this Python, the package and a private folder, nothing else: no sources of
assignments, no hidden tests, no other student's work, no gradebook, no network. It ends with all
that was started in it. Two kinds are known:

bubblewrap
    Linux namespaces, made by ``bwrap``; needs no rights, where the system lets users make
    namespaces.
user
    For root in a container that does not allow namespaces: a user id that nobody else has, and
    Landlock for the files and TCP. Everything else on the machine that root left open to every
    user of the network, UDP above all, stays open.

`find` tries them in this order and says why there is none.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

ENTER = Path(__file__).with_name("enter.py")
# What programs need of a system. Not all of /usr: work may lie in /usr/src.
SYSTEM = (
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/usr/bin", "/usr/sbin", "/usr/lib"),
    *("/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share", "/usr/local/bin"),
    *("/usr/local/lib", "/usr/local/lib64", "/usr/local/share", "/usr/local/cuda"),
    *("/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache", "/etc/localtime"),
)
# Where there is no namespace, these are the machine's own.
SHOWN = ("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system/cpu")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
FIRST_USER = 1_800_000_000  # far beyond what systems give away


class NoSandboxError(RuntimeError):
    """This machine cannot lock a program up, or what is to be hidden lies where it looks."""


@dataclass(frozen=True)
class Entry:
    """What `enter.py` is told: see there."""

    log: str
    private: str
    home: str
    memory: int
    file_bytes: int
    processes: int
    environment: dict[str, str]
    uid: int | None
    readable: list[str]
    devices: list[str]


@dataclass(frozen=True)
class Sandbox:
    """How programs are locked up on this machine.

    Attributes
    ----------
    kind : {"bubblewrap", "user"}
    readable : tuple of str
        Files and folders that a program may read.
    """

    kind: str
    readable: tuple[str, ...]

    def prepare(self) -> Path:
        """Make a private folder: the only one that a program may write to; it works in ``home``."""
        private = Path(tempfile.mkdtemp(prefix="dgbook-"))
        (private / "home").mkdir()
        (private / "packages").mkdir()
        # Python lists the folders that it imports from, and the package's may hold the sources.
        (private / "packages" / "dgbook").symlink_to(_package())
        self.give(private)
        self.give(private / "home")
        return private

    def give(self, path: Path) -> None:
        """Let programs in the sandbox own a file that lies in their private folder."""
        if self.kind == "user":
            os.chown(path, self.user(), self.user(), follow_symlinks=False)

    def user(self) -> int:
        """The user id of programs that this process starts in a sandbox of the kind "user"."""
        return FIRST_USER + os.getpid()

    def command(
        self,
        private: Path,
        program: Iterable[str],
        environment: Mapping[str, str],
        memory_bytes: int,
    ) -> list[str]:
        """The command that runs a program in a sandbox; its errors go to ``private/log``.

        Parameters
        ----------
        private : Path
            What `prepare` made; each folder serves one program.
        program : iterable of str
            The program's path and its arguments.
        environment : mapping
            All environment variables that it gets, beside those that every program needs.
        memory_bytes : int
            Address space of each process.
        """
        home = private / "home"
        entry = Entry(
            log=str(private / "log"),
            private=str(private),
            home=str(home),
            memory=memory_bytes,
            file_bytes=2**28,
            processes=4096,
            environment={
                "HOME": str(home),
                "TMPDIR": str(home),
                "LANG": "C.UTF-8",
                "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"]),
                "PYTHONPATH": str(private / "packages"),
                "PYTHONDONTWRITEBYTECODE": "1",
                **environment,
            },
            uid=self.user() if self.kind == "user" else None,
            readable=[*self.readable, *(p for p in SHOWN if os.path.exists(p))],
            devices=[p for p in DEVICES if os.path.exists(p)],
        )
        inside = list(program)
        if self.kind == "bubblewrap":
            inside = [*_bubblewrap(self.readable, private), *inside]
        return [sys.executable, "-I", "-S", str(ENTER), json.dumps(asdict(entry)), *inside]

    def end(self, starter: int | None = None) -> None:
        """Kill what still runs of the programs that a process has started; this one by default.

        Namespaces end by themselves: with their first process or the process that started them.
        """
        if self.kind == "user":
            user = FIRST_USER + (starter or os.getpid())
            child = os.fork()
            if child == 0:  # the system forbids a user to signal others
                with contextlib.suppress(BaseException):
                    os.setresuid(user, user, user)
                    for _ in range(200):  # until there is nobody to be killed
                        os.kill(-1, signal.SIGKILL)
                        time.sleep(0.01)
                os._exit(0)
            os.waitpid(child, 0)


def _bubblewrap(readable: Iterable[str], private: Path) -> list[str]:
    command = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--die-with-parent"]
    command += ["--new-session", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL"]
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for path in readable:
        command += ["--ro-bind", path, path]
    return [*command, "--bind", str(private), str(private), "--chdir", str(private / "home"), "--"]


def _package() -> Path:
    """The folder of the package, which students use."""
    found = importlib.util.find_spec("dgbook")
    assert found is not None and found.origin is not None
    return Path(found.origin).resolve().parent


def _readable() -> tuple[str, ...]:
    """What a program needs to be able to read: the system, Python, the package."""
    paths = [Path(path) for path in SYSTEM if os.path.exists(path)]
    # The last is where a virtual environment's links lead, which may be one more link.
    found = [Path(sys.prefix), Path(sys.base_prefix), Path(sys._base_executable).parents[1]]
    for path in [*found, _package()]:
        paths += [p for p in (path, path.resolve()) if str(p) not in ("/", "/usr", "/usr/local")]
    kept: list[Path] = []
    for path in dict.fromkeys(paths):
        if not any(path != other and path.is_relative_to(other) for other in paths):
            kept.append(path)
    return tuple(map(str, kept))


def _why_not(sandbox: Sandbox) -> str:
    """An empty string if a program runs in a sandbox, else what goes wrong."""
    private = sandbox.prepare()
    try:
        program = [sys.executable, "-c", "import os, sys, dgbook; sys.exit(os.getcwd())"]
        command = sandbox.command(private, program, {}, 2**33)
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        log = private / "log"
        said = (log.read_text(errors="replace") if log.exists() else "") + done.stderr
        if said.strip() == str(private / "home"):
            return ""
        return (said.strip().splitlines() or [f"it ends with status {done.returncode}"])[-1]
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        sandbox.end()
        shutil.rmtree(private, ignore_errors=True)


@functools.cache
def find(kinds: tuple[str, ...] = ("bubblewrap", "user")) -> Sandbox:
    """The first kind of sandbox that works on this machine; each is tried.

    Raises
    ------
    NoSandboxError
        If none does, with the reasons.
    """
    reasons = []
    for kind in kinds:
        sandbox = Sandbox(kind, _readable())
        if kind == "bubblewrap" and shutil.which("bwrap") is None:
            reasons.append("bubblewrap: there is no program bwrap")
        elif kind == "user" and os.geteuid() != 0:
            reasons.append("user: only root can become another user")
        elif reason := _why_not(sandbox):
            reasons.append(f"{kind}: {reason}")
        else:
            return sandbox
    raise NoSandboxError(
        "Students' code runs in a sandbox only, and this machine has none:\n  "
        + "\n  ".join(reasons)
        + "\nOn Linux install bubblewrap (apt install bubblewrap, dnf install bubblewrap). "
        "What else may be missing is in exercises/README.md."
    )


def check_hidden(sandbox: Sandbox, hidden: Iterable[Path]) -> None:
    """Refuse to go on if a folder that must stay hidden is one that a sandbox shows.

    Raises
    ------
    NoSandboxError
        With the folder and where it lies.
    """
    for folder in hidden:
        for shown in map(Path, sandbox.readable):
            if folder.resolve().is_relative_to(shown.resolve()):
                raise NoSandboxError(
                    f"{folder} lies in {shown}, which students' code can read: move it elsewhere"
                )
