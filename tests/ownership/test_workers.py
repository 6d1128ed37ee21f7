"""A worker's own life, and how its death is established."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from django.db import DatabaseError

from sessions_app import ownership
from sessions_app.models import Worker
from sessions_app.ownership import deaths
from tests.support import racing, world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

LEASE = 20.0
BEAT = 5.0


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time

    def go(self, seconds: float) -> None:
        self.time += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def watch(clock: Clock) -> ownership.Watch:
    return ownership.Watch(lease_seconds=LEASE, clock=clock)


@pytest.fixture
def registered(tmp_path: Path, clock: Clock) -> ownership.Registration:
    registration = ownership.register(kind="worker", run_dir=tmp_path, lease_seconds=LEASE, now=world.NOW)
    registration.clock = clock
    registration.renewed_at = clock()
    return registration


def row(worker_id: str) -> Worker:
    return Worker.objects.get(pk=worker_id)


def beat(worker: Worker) -> None:
    """The worker renews, wherever it runs."""
    worker.heartbeat_count += 1
    Worker.objects.filter(pk=worker.pk).update(heartbeat_count=worker.heartbeat_count)


def watch_for(
    watch: ownership.Watch, clock: Clock, seconds: float, also: Callable[[], None] = lambda: None
) -> list[str]:
    """Renew and look at every beat for that long; who was found dead."""
    found = [worker.pk for worker in watch.look(now=world.NOW)]
    for _ in range(round(seconds / BEAT)):
        clock.go(BEAT)
        watch.renewed()
        also()
        found += [worker.pk for worker in watch.look(now=world.NOW)]
    return found


# Registering and renewing


def test_a_registered_worker_holds_the_lock_that_its_row_names(
    registered: ownership.Registration, tmp_path: Path
) -> None:
    stored = row(registered.worker_id)

    assert stored.lock_path == str(tmp_path / f"{registered.worker_id}.lock")
    found = Path(stored.lock_path).stat()
    assert (stored.lock_device, stored.lock_inode) == (found.st_dev, found.st_ino)
    assert ownership.is_alive(stored)
    assert not ownership.prove_death(stored, now=world.NOW)


def test_a_worker_whose_row_cannot_be_stored_leaves_no_lock_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise DatabaseError

    monkeypatch.setattr(Worker.objects, "create", fail)
    with pytest.raises(DatabaseError):
        ownership.register(kind="worker", run_dir=tmp_path, lease_seconds=LEASE, now=world.NOW)

    assert list(tmp_path.iterdir()) == []


def test_each_renewal_counts_one_up_and_moves_no_other_worker(registered: ownership.Registration) -> None:
    world.worker()
    others = world.rows_of(Worker, boot_id="another boot")

    assert [registered.renew(now=world.after(second)) for second in (5, 10)] == [True, True]

    assert row(registered.worker_id).heartbeat_count == 2
    assert row(registered.worker_id).heartbeat_at == world.after(10)
    assert world.rows_of(Worker, boot_id="another boot") == others


@pytest.mark.parametrize("end", ["dead_at", "stopped_at"])
def test_a_worker_that_ended_cannot_renew(registered: ownership.Registration, end: str) -> None:
    Worker.objects.filter(pk=registered.worker_id).update(**{end: world.NOW})

    assert not registered.renew(now=world.after(5))

    assert row(registered.worker_id).heartbeat_count == 0


def test_a_worker_is_in_doubt_once_a_lease_passed_since_it_asked_for_its_last_renewal(
    registered: ownership.Registration, clock: Clock
) -> None:
    clock.go(LEASE)
    assert not registered.is_in_doubt()
    clock.go(0.1)
    assert registered.is_in_doubt()

    registered.renew(now=world.NOW)

    assert not registered.is_in_doubt()


def test_a_slow_renewal_counts_from_when_it_was_asked_for(
    registered: ownership.Registration, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([clock(), clock() + 15])
    registered.clock = lambda: next(times)

    registered.renew(now=world.NOW)

    assert registered.renewed_at == clock()


def test_a_worker_that_stopped_says_so_and_gives_its_lock_up(registered: ownership.Registration) -> None:
    registered.stop(now=world.after(7))
    registered.stop(now=world.after(9))

    stored = row(registered.worker_id)
    assert stored.stopped_at == world.after(7)
    assert ownership.prove_death(stored, now=world.after(8))
    assert row(registered.worker_id).dead_at is None
    assert not Path(stored.lock_path).exists()


# Proved


def free(registered: ownership.Registration) -> Worker:
    """The lock as the kernel leaves it when the process was killed: the file is there and free."""
    registered.lock._close_copy()
    return row(registered.worker_id)


def test_a_free_lock_proves_the_death_once_and_for_all(registered: ownership.Registration) -> None:
    killed = free(registered)

    assert ownership.prove_death(killed, now=world.after(3))
    assert ownership.prove_death(row(killed.pk), now=world.after(8))

    stored = row(killed.pk)
    assert (stored.dead_at, stored.death) == (world.after(3), "proved")
    assert not registered.renew(now=world.after(9))


def test_a_renewal_between_the_look_and_the_verdict_wins(registered: ownership.Registration) -> None:
    seen = free(registered)
    registered.renew(now=world.after(2))

    assert not ownership.prove_death(seen, now=world.after(3))

    assert ownership.is_alive(row(seen.pk))


def test_of_two_verdicts_at_once_the_first_stays(registered: ownership.Registration) -> None:
    seen, also_seen = free(registered), row(registered.worker_id)

    assert deaths.establish(seen, death="proved", now=world.after(3))
    assert deaths.establish(also_seen, death="assumed", now=world.after(4))

    assert (row(seen.pk).death, row(seen.pk).dead_at) == ("proved", world.after(3))


@pytest.mark.django_db(transaction=True)
def test_a_renewal_and_a_verdict_at_the_same_instant_never_both_succeed() -> None:
    with racing.Racers(2) as racers:
        for _ in racing.rounds(300, within=6):
            worker = world.worker()

            def renew(worker: Worker = worker) -> bool:
                alive = Worker.objects.filter(pk=worker.pk, dead_at=None, stopped_at=None)
                return alive.update(heartbeat_count=1, heartbeat_at=world.NOW) == 1

            def declare(worker: Worker = worker) -> bool:
                return deaths.establish(worker, death="assumed", now=world.NOW)

            renewed, declared = racers.round(renew, declare)

            stored = row(worker.pk)
            assert renewed is not declared
            assert (stored.dead_at is not None) is declared


# Assumed


def test_a_counter_that_stands_still_for_a_lease_is_a_death_and_one_that_goes_on_is_not(
    watch: ownership.Watch, clock: Clock
) -> None:
    silent, living = world.worker(), world.worker()
    stopped = world.worker(stopped_at=world.NOW)

    found = watch_for(watch, clock, LEASE + BEAT, also=lambda: beat(living))

    assert found == [silent.pk]
    assert row(silent.pk).death == "assumed"
    assert ownership.is_alive(row(living.pk))
    assert row(stopped.pk).dead_at is None


def test_nobody_is_assumed_dead_before_a_lease_has_passed(watch: ownership.Watch, clock: Clock) -> None:
    world.worker()

    assert watch_for(watch, clock, LEASE - BEAT) == []


def test_a_worker_that_renews_just_before_the_verdict_lives(watch: ownership.Watch, clock: Clock) -> None:
    late = world.worker()
    assert watch_for(watch, clock, LEASE - BEAT) == []

    beat(late)

    assert watch_for(watch, clock, LEASE - BEAT) == []
    assert watch_for(watch, clock, BEAT) == [late.pk]


def test_a_renewal_that_commits_between_look_and_verdict_wins(
    watch: ownership.Watch, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = world.worker()
    assert watch_for(watch, clock, LEASE - BEAT) == []
    prove = deaths.prove_death

    def renew_meanwhile(worker: Worker, *, now: datetime) -> bool:
        Worker.objects.filter(pk=worker.pk).update(heartbeat_count=1)
        return prove(worker, now=now)

    monkeypatch.setattr(deaths, "prove_death", renew_meanwhile)
    clock.go(2 * BEAT)
    watch.renewed()

    assert watch.look(now=world.NOW) == []
    assert ownership.is_alive(row(late.pk))


def test_a_database_that_was_away_kills_nobody(watch: ownership.Watch, clock: Clock) -> None:
    """Nobody could renew; the watcher knows it from its own heartbeat."""
    other = world.worker()
    watch_for(watch, clock, BEAT)

    clock.go(10 * LEASE)
    watch.renewal_failed()
    watch.renewed()
    assert watch.look(now=world.NOW) == []

    assert ownership.is_alive(row(other.pk))


def test_one_renewal_of_the_watcher_that_failed_starts_the_lease_anew(
    watch: ownership.Watch, clock: Clock
) -> None:
    silent = world.worker()
    assert watch_for(watch, clock, LEASE - BEAT) == []

    watch.renewal_failed()

    assert watch_for(watch, clock, LEASE - BEAT) == []
    assert watch_for(watch, clock, BEAT) == [silent.pk]


def test_a_standstill_of_everybody_that_no_renewal_noticed_kills_nobody(
    watch: ownership.Watch, clock: Clock
) -> None:
    """A frozen container, a paused virtual machine: clocks went on, nothing failed, all counters stood still."""
    other = world.worker()
    watch_for(watch, clock, BEAT)

    clock.go(10 * LEASE)
    assert watch.look(now=world.NOW) == []
    watch.renewed()
    assert watch.look(now=world.NOW) == []
    beat(other)
    assert watch_for(watch, clock, LEASE - BEAT) == []

    assert ownership.is_alive(row(other.pk))


def test_a_stepped_wall_clock_kills_nobody(watch: ownership.Watch) -> None:
    other = world.worker()
    watch.look(now=world.NOW)
    for _ in range(10):
        watch.renewed()

    assert watch.look(now=world.after(10**8)) == []
    assert watch.look(now=world.after(-(10**8))) == []
    assert ownership.is_alive(row(other.pk))


def test_a_watcher_that_just_started_knows_nothing_of_the_past(clock: Clock) -> None:
    world.worker(heartbeat_at=world.after(-(10**6)))

    fresh = ownership.Watch(lease_seconds=LEASE, clock=clock)

    assert watch_for(fresh, clock, LEASE - BEAT) == []


def test_a_proved_death_needs_no_lease(watch: ownership.Watch, registered: ownership.Registration) -> None:
    killed = free(registered)
    living = world.worker()

    assert [worker.pk for worker in watch.look(now=world.after(1))] == [killed.pk]

    assert row(killed.pk).death == "proved"
    assert ownership.is_alive(row(living.pk))
    assert watch.look(now=world.after(2)) == []
