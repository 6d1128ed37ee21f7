"""The lock of a worker, looked at by others: real processes, killed for real."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import Popen

import pytest

from sessions_app.models import Worker
from sessions_app.ownership import lockfile
from tests.support import children, racing

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Holder:
    """A process that registered as a worker."""

    process: "Popen[str]"
    worker_id: str
    child: int

    @property
    def recorded(self) -> lockfile.Recorded:
        row = Worker.objects.get(pk=self.worker_id)
        return lockfile.Recorded(
            boot_id=row.boot_id, path=row.lock_path, device=row.lock_device, inode=row.lock_inode
        )

    def look(self) -> str:
        return lockfile.look(self.recorded)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=20)


Start = Callable[[str], Holder]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a holder and kills it, and its child, in the end."""
    holders: list[Holder] = []

    def begin(function: str) -> Holder:
        process = children.start("tests.ownership.holders", function, str(tmp_path))
        assert process.stdout is not None
        worker_id, _, child = process.stdout.readline().strip().partition(" ")
        holders.append(Holder(process, worker_id, int(child or 0)))
        return holders[-1]

    yield begin
    for holder in holders:
        if holder.child:
            with suppress(ProcessLookupError):
                os.kill(holder.child, signal.SIGKILL)
        holder.kill()
        holder.process.__exit__(None, None, None)


def test_a_living_process_holds_its_lock_and_a_killed_one_does_not(start: Start) -> None:
    holder = start("hold")
    assert holder.look() == "held"

    holder.kill()

    assert holder.look() == "free"


def test_a_stopped_process_still_holds_its_lock(start: Start) -> None:
    holder = start("hold")

    holder.process.send_signal(signal.SIGSTOP)
    try:
        assert holder.look() == "held"
    finally:
        holder.process.send_signal(signal.SIGCONT)


def test_a_fork_neither_keeps_the_lock_nor_gives_it_up(start: Start) -> None:
    holder = start("hold_with_a_fork")
    assert holder.look() == "held"

    holder.kill()

    os.kill(holder.child, 0)
    assert holder.look() == "free"


def test_the_end_of_a_fork_does_not_unlock_its_parent(start: Start) -> None:
    holder = start("hold_with_a_fork")

    os.kill(holder.child, signal.SIGKILL)
    os.waitid(os.P_PID, holder.process.pid, os.WEXITED | os.WNOHANG)

    assert holder.look() == "held"


def test_a_command_started_by_the_worker_does_not_keep_the_lock(start: Start) -> None:
    holder = start("hold_with_a_command")
    assert holder.look() == "held"

    holder.kill()

    os.kill(holder.child, 0)
    assert holder.look() == "free"


def test_a_fork_that_kept_the_descriptor_keeps_the_lock_held_so_that_nothing_is_proved(start: Start) -> None:
    holder = start("hold_with_a_fork_that_keeps_the_descriptor")

    holder.kill()

    assert holder.look() == "held"


def test_a_lock_file_that_was_removed_proves_nothing_and_is_not_made_again(start: Start) -> None:
    holder = start("hold")
    recorded = holder.recorded
    Path(recorded.path).unlink()
    holder.kill()

    assert lockfile.look(recorded) == "unprovable"
    assert not Path(recorded.path).exists()


def test_another_file_at_the_same_path_proves_nothing(start: Start) -> None:
    holder = start("hold")
    path = Path(holder.recorded.path)
    path.rename(path.with_suffix(".moved"))
    path.touch()
    holder.kill()

    assert holder.look() == "unprovable"


def test_a_link_to_the_lock_file_proves_nothing(start: Start) -> None:
    holder = start("hold")
    path = Path(holder.recorded.path)
    moved = path.rename(path.with_suffix(".moved"))
    path.symlink_to(moved)
    holder.kill()

    assert holder.look() == "unprovable"


def test_a_lock_of_another_boot_proves_nothing(start: Start) -> None:
    holder = start("hold")
    holder.kill()

    assert lockfile.look(replace(holder.recorded, boot_id="an earlier boot")) == "unprovable"
    assert lockfile.look(holder.recorded) == "free"


def test_looks_do_not_disturb_each_other_or_the_file(start: Start) -> None:
    living, dead = start("hold"), start("hold")
    dead.kill()
    recorded = [living.recorded, dead.recorded]
    before = sorted(os.listdir(Path(recorded[0].path).parent))

    def look_often() -> list[str]:
        return [lockfile.look(each) for _ in range(200) for each in recorded]

    for findings in racing.together([look_often] * 4):
        assert findings == ["held", "free"] * 200
    assert sorted(os.listdir(Path(recorded[0].path).parent)) == before


def test_a_worker_that_stopped_leaves_no_file(start: Start) -> None:
    holder = start("stop")

    assert holder.look() == "unprovable"
    assert not Path(holder.recorded.path).exists()
    assert Worker.objects.get(pk=holder.worker_id).stopped_at is not None


def test_a_path_that_is_taken_is_never_locked_again(tmp_path: Path) -> None:
    path = tmp_path / "worker.lock"
    first = lockfile.LockFile(path)

    with pytest.raises(FileExistsError):
        lockfile.LockFile(path)

    assert lockfile.look(first.recorded) == "held"
    first.close()
    first.close()
    assert not path.exists()
