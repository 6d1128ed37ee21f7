"""Processes that hold a worker's lock, and end in the ways that processes end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from sessions_app import ownership
from tests.support import world


def _register(run_dir: str) -> ownership.Registration:
    return ownership.register(kind="worker", run_dir=Path(run_dir), lease_seconds=20, now=world.NOW)


def _tell(*words: object) -> None:
    sys.stdout.write(" ".join(str(word) for word in words) + "\n")
    sys.stdout.flush()


def hold(run_dir: str) -> None:
    """Register, tell the worker's id, hold until the input ends."""
    _tell(_register(run_dir).worker_id)
    sys.stdin.read()


def hold_with_a_fork(run_dir: str) -> None:
    """The same, with a forked child that lives until it is killed; tells the child's pid too."""
    worker_id = _register(run_dir).worker_id
    child = os.fork()
    if child == 0:
        signal.pause()
    _tell(worker_id, child)
    sys.stdin.read()


def hold_with_a_fork_that_keeps_the_descriptor(run_dir: str) -> None:
    """The child is one that no Python hook told of the fork: it has the open file like its parent."""
    worker_id = _register(run_dir).worker_id
    lock = next(fd for fd in os.listdir("/proc/self/fd") if _target(fd).endswith(f"{worker_id}.lock"))
    kept = os.dup(int(lock))
    child = os.fork()
    if child == 0:
        signal.pause()
    os.close(kept)
    _tell(worker_id, child)
    sys.stdin.read()


def _target(descriptor: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""


def hold_with_a_command(run_dir: str) -> None:
    """The same, with a command that was started meanwhile; tells its pid too."""
    worker_id = _register(run_dir).worker_id
    command = subprocess.Popen(["/bin/sleep", "60"])
    _tell(worker_id, command.pid)
    sys.stdin.read()


def stop(run_dir: str) -> None:
    """Register, mark itself stopped, tell the worker's id, live on until the input ends."""
    registration = _register(run_dir)
    registration.stop(now=world.NOW)
    _tell(registration.worker_id)
    sys.stdin.read()
