"""Ties a process to its parent and gives it a name, as far as the system offers it (Linux)."""

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NAME: Final = 15
PARENT_GONE: Final = 71
"""Exit code of a process whose parent had died before the tie was made."""


# Loaded once, before any fork: a child that was just forked should not have to load anything.
_libc: Final = ctypes.CDLL(None) if sys.platform == "linux" else None


def die_with_parent(parent: int) -> None:
    """From now on the kernel kills this process when its parent ends, however it ends.

    ``parent`` is the pid that the parent told: if another process is the parent by now, the real one died
    before the tie, and this process ends here. Elsewhere than on Linux there is no such tie.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(PARENT_GONE)


def name_process(name: str) -> None:
    """The name that ``ps -o comm`` and ``top`` show; at most 15 bytes."""
    _prctl(_PR_SET_NAME, name.encode())


def _prctl(option: int, value: int | bytes) -> None:
    if _libc is not None:
        _libc.prctl(option, value, 0, 0, 0)
