"""The lock that a worker holds for life, and how others look at it without deceiving themselves.

flock belongs to the open file description: the kernel gives it up when the last descriptor of it is
closed, however the process ends. A fork shares the description, so a child closes its copy (which
releases nothing) and never unlocks.
"""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Finding = Literal["free", "held", "unprovable"]

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """Where a lock file was when its worker took it."""

    boot_id: str
    path: str
    device: int
    inode: int


class LockFile:
    """A new file of this process's own, locked exclusively until the process ends or ``close``."""

    def __init__(self, path: Path) -> None:
        """Create and lock the file.

        Raises FileExistsError when something is there already, OSError when the directory is not writable
        or the file system knows no locks.
        """
        self._descriptor: int | None = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        self._path = path
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise
        found = os.fstat(self._descriptor)
        self.recorded = Recorded(boot_id=boot_id(), path=str(path), device=found.st_dev, inode=found.st_ino)
        os.register_at_fork(after_in_child=self._close_copy)

    def close(self) -> None:
        """Give the lock up and remove the file. The worker's row must say that it stopped by then."""
        self._path.unlink(missing_ok=True)
        self._close_copy()

    def _close_copy(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def look(recorded: Recorded) -> Finding:
    """Whether the recorded lock is free, without creating, removing or keeping anything.

    ``free`` proves that no process holds it any more. A missing file, another boot or another inode
    proves nothing, and neither does a held lock: some fork may have kept the descriptor.
    """
    if recorded.boot_id != boot_id():
        return "unprovable"
    try:
        descriptor = os.open(recorded.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return "unprovable"
    try:
        found = os.fstat(descriptor)
        if (found.st_dev, found.st_ino) != (recorded.device, recorded.inode):
            return "unprovable"
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return "held"
    except OSError:
        return "unprovable"
    finally:
        os.close(descriptor)
    return "free"


def discard(path: Path) -> bool:
    """Remove a lock file unless some process holds its lock. False: it is held, or out of reach."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def boot_id() -> str:
    """Changes with every boot of this machine; empty where the system tells none."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""
