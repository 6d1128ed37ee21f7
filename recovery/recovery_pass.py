"""One pass as an operator asks for it: discover, wait where death is not determined, recover, report."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from django.conf import settings
from django.utils import timezone

from recovery import discovery, plan, service
from recovery.recover import Recovered, foresee
from recovery.report import Report
from sessions_app import ownership
from sessions_app.models import Session

PROGRESS_EVERY: Final = 100
GIVEN_UP: Final = (
    "It is parked, since it could not be recovered again and again; the log of the server says why. "
    "It is tried again once somebody resumes it or sends a prompt."
)

Tell = Callable[[str], None]


@dataclass(kw_only=True)
class Pass:
    """What is asked of one pass."""

    only: Collection[str] = ()
    """Sessions to look at; all when there are none."""
    override: plan.Policy | None = None
    wait: bool = True
    tell: Tell = lambda line: None
    sleep: Callable[[float], None] = field(default=time.sleep)

    def concerns(self, session_id: str) -> bool:
        return not self.only or session_id in self.only


def unknown_sessions(session_ids: Sequence[str]) -> list[str]:
    """Those of the ids that no session has."""
    known = set(Session.objects.filter(pk__in=session_ids).values_list("pk", flat=True))
    return [session_id for session_id in session_ids if session_id not in known]


def run(asked: Pass) -> Report:
    """Recover every orphan and wake what is due.

    Waits up to a lease and a heartbeat for owners that are neither proved dead nor seen alive. Safe at any
    time, any number of times, on any host; a crash leaves each session recovered or as it was. Raises
    OSError when the run directory cannot be used.
    """
    report = Report()
    me = ownership.register(
        kind="command",
        run_dir=settings.HOLDFAST_RUN_DIR,
        lease_seconds=settings.HOLDFAST_LEASE_SECONDS,
        now=timezone.now(),
    )
    try:
        _recover(report, me, asked)
        alive: Collection[str] = ()
        if asked.wait and _undetermined(asked):
            alive = _watch(me, asked)
            _recover(report, me, asked)
        for owner_id in _undetermined(asked).values():
            if owner_id in alive:
                report.alive += 1
            else:
                report.undetermined += 1
        report.woken = len(service.wake_due(now=timezone.now(), only=asked.only))
        _name_given_up(report, asked)
    finally:
        me.stop(now=timezone.now())
    return report


def foresee_all(asked: Pass) -> Report:
    """What a pass that does not wait would claim and wake now. Nothing is written, not even a death."""
    report = Report(is_dry_run=True)
    now = timezone.now()
    for orphan in discovery.look_for_orphans():
        if asked.concerns(orphan.session_id):
            foreseen = foresee(orphan, now=now, override=asked.override)
            if foreseen is not None:
                report.foresee(foreseen)
    report.undetermined = len(_undetermined(asked).keys() - report.session_ids)
    _name_given_up(report, asked)
    report.woken = sum(asked.concerns(session_id) for session_id in discovery.find_due(now=now))
    return report


def _recover(report: Report, me: ownership.Registration, asked: Pass) -> None:
    found = service.recover_orphans(
        worker_id=me.worker_id, now=timezone.now(), only=asked.only, override=asked.override
    )
    for number, recovered in enumerate(found, start=1):
        report.add(recovered)
        if number % PROGRESS_EVERY == 0:
            asked.tell(f"{number} orphans looked at, {report.claimed} recovered")


def _name_given_up(report: Report, asked: Pass) -> None:
    """Name what was parked before it could be settled: passes leave it alone, and nobody may overlook it."""
    for session_id in discovery.find_given_up():
        if asked.concerns(session_id) and session_id not in report.session_ids:
            report.add(Recovered(session_id=session_id, outcome="failed", detail=GIVEN_UP))


def _undetermined(asked: Pass) -> dict[str, str | None]:
    """The sessions whose owner may be alive, each with its owner."""
    rows = Session.objects.filter(pk__in=discovery.find_undetermined())
    return {pk: owner for pk, owner in rows.values_list("pk", "owner_id") if asked.concerns(pk)}


def _watch(me: ownership.Registration, asked: Pass) -> frozenset[str]:
    """Which workers' counters moved, seen while ours did; deaths are established on the way.

    Ends as soon as every owner that matters is known to live or to have died.
    """
    heartbeat, lease = settings.HOLDFAST_HEARTBEAT_SECONDS, settings.HOLDFAST_LEASE_SECONDS
    asked.tell(f"waiting up to {lease + heartbeat:g} s for workers whose death is not determined")
    watch = ownership.Watch(lease_seconds=lease)
    watch.look(now=timezone.now())
    before, moved = _counters(), frozenset[str]()
    deadline = time.monotonic() + lease + heartbeat
    while time.monotonic() < deadline and not moved.issuperset(_undetermined(asked).values()):
        asked.sleep(heartbeat)
        if me.renew(now=timezone.now()):
            watch.renewed()
        watch.look(now=timezone.now())
        moved |= {pk for pk, count in _counters().items() if count != before.get(pk)}
    return moved


def _counters() -> dict[str, int]:
    return dict(ownership.presumed_alive().values_list("pk", "heartbeat_count"))
