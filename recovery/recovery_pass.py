"""One pass as an operator asks for it: discover, wait where death is not determined, recover, report."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.conf import settings
from django.utils import timezone

from recovery import discovery, plan, service
from recovery.models import RecoveryClaim
from recovery.recover import Recovered, foresee
from sessions_app import ownership
from sessions_app.models import Session

PROGRESS_EVERY: Final = 100


@dataclass(kw_only=True)
class Report:
    """What one pass found and did; the JSON object of contract section 1."""

    found: int = 0
    claimed: int = 0
    lost: int = 0
    alive: int = 0
    undetermined: int = 0
    continued: int = 0
    resumed: int = 0
    held: int = 0
    failed: int = 0
    woken: int = 0
    sessions: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, str]] = field(default_factory=list)
    dry_run: bool = False

    @property
    def exit_code(self) -> int:
        if self.failed:
            return 1
        needs_decision = any(claim["outcome"] in ("held", "parked") for claim in self.sessions)
        return 3 if needs_decision and not self.dry_run else 0

    def add(self, recovered: Recovered) -> None:
        self.found += 1
        if recovered.outcome == "failed":
            self.failed += 1
            self.failures.append({"session": recovered.session_id, "detail": recovered.detail})
        elif recovered.outcome == "claimed" and recovered.claim is not None:
            self.claimed += 1
            self.count(recovered.claim)
        else:
            self.lost += 1

    def count(self, claim: RecoveryClaim) -> None:
        """Add what a claim did, or would do."""
        self.sessions.append(claim_shape(claim))
        if claim.outcome == "continued":
            self.continued += 1
        elif claim.outcome == "resumed":
            self.resumed += 1
        elif claim.outcome in ("held", "parked"):
            self.held += 1

    def to_json(self) -> dict[str, Any]:
        names = (
            "found",
            "claimed",
            "lost",
            "alive",
            "undetermined",
            "continued",
            "resumed",
            "held",
            "failed",
            "woken",
            "sessions",
            "failures",
        )
        return {name: getattr(self, name) for name in names} | {"dry_run": self.dry_run}

    def to_table(self) -> str:
        lines = [_row(*HEADINGS)] if self.sessions else []
        lines += [
            _row(
                claim["session"],
                claim["outcome"],
                *(str(claim["found"].get(kind, 0)) for kind in ("attempts", "tools", "parts")),
                claim["continuation"] or "",
            )
            for claim in self.sessions
        ]
        lines += [f"FAILED {failure['session']}: {failure['detail']}" for failure in self.failures]
        lines.append(self._summary())
        return "\n".join(lines)

    def _summary(self) -> str:
        verb = "would be recovered" if self.dry_run else "recovered"
        parts = [
            f"{self.claimed if not self.dry_run else self.found} of {self.found} orphans {verb}",
            f"{self.continued} continued, {self.resumed} resumed, {self.held} need a decision",
            f"{self.failed} failed, {self.lost} taken by others",
            f"{self.alive} sessions have a living owner, {self.undetermined} are undetermined",
            f"{self.woken} woken",
        ]
        return "; ".join(parts) + "."


HEADINGS: Final = ("session", "outcome", "attempts", "tools", "parts", "continuation")
_WIDTHS: Final = (44, 10, 9, 6, 6, 0)


def _row(*cells: str) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=True)).rstrip()


def claim_shape(claim: RecoveryClaim) -> dict[str, Any]:
    """The shape of contract section 3, Claim."""
    return {
        "id": claim.pk or None,
        "session": claim.session_id,
        "boundary_seq": claim.boundary_seq,
        "worker": claim.worker or None,
        "outcome": claim.outcome,
        "death": claim.death,
        "lost_owner": claim.lost_owner or None,
        "found": claim.found,
        "continuation": claim.continuation or None,
        "created_at": claim.created_at.isoformat().replace("+00:00", "Z"),
    }


def unknown_sessions(session_ids: Sequence[str]) -> list[str]:
    known = set(Session.objects.filter(pk__in=session_ids).values_list("pk", flat=True))
    return [session_id for session_id in session_ids if session_id not in known]


def run(
    *,
    only: Collection[str] = (),
    override: plan.Policy | None = None,
    wait: bool = True,
    dry_run: bool = False,
    tell: Callable[[str], None] = lambda line: None,
    sleep: Callable[[float], None] = time.sleep,
) -> Report:
    """One pass. Waits a lease and a heartbeat for workers that are neither proved dead nor alive.

    ``dry_run`` writes nothing. Safe at any time, any number of times, on any host.
    """
    if dry_run:
        return _look_only(only, override)
    report = Report()
    me = ownership.register(
        kind="command",
        run_dir=settings.HOLDFAST_RUN_DIR,
        lease_seconds=settings.HOLDFAST_LEASE_SECONDS,
        now=timezone.now(),
    )
    try:
        _recover(report, me, only=only, override=override, tell=tell)
        if wait and discovery.find_undetermined():
            alive = _watch(me, tell=tell, sleep=sleep)
            _recover(report, me, only=only, override=override, tell=tell)
            _count_the_rest(report, only, alive=alive)
        else:
            _count_the_rest(report, only, alive=frozenset())
        report.woken = len(service.wake_due(now=timezone.now(), only=only))
    finally:
        me.stop(now=timezone.now())
    return report


def _recover(
    report: Report,
    me: ownership.Registration,
    *,
    only: Collection[str],
    override: plan.Policy | None,
    tell: Callable[[str], None],
) -> None:
    for recovered in service.recover_all(
        worker_id=me.worker_id, now=timezone.now(), only=only, override=override
    ):
        report.add(recovered)
        if report.found % PROGRESS_EVERY == 0:
            tell(f"{report.found} orphans looked at, {report.claimed} recovered")


def _watch(
    me: ownership.Registration, *, tell: Callable[[str], None], sleep: Callable[[float], None]
) -> frozenset[str]:
    """Renew our own heartbeat for a lease and a heartbeat, and see whose counter moved meanwhile."""
    heartbeat, lease = settings.HOLDFAST_HEARTBEAT_SECONDS, settings.HOLDFAST_LEASE_SECONDS
    tell(f"waiting {lease + heartbeat:g} s for workers whose death is not determined")
    watch = ownership.Watch(lease_seconds=lease)
    watch.look(now=timezone.now())
    before = _counters()
    deadline = time.monotonic() + lease + heartbeat
    while time.monotonic() < deadline:
        sleep(heartbeat)
        if me.renew(now=timezone.now()):
            watch.renewed()
        watch.look(now=timezone.now())
    return frozenset(pk for pk, count in _counters().items() if count != before.get(pk, count))


def _counters() -> dict[str, int]:
    return dict(
        ownership.presumed_alive().values_list("pk", "heartbeat_count"),
    )


def _count_the_rest(report: Report, only: Collection[str], *, alive: Collection[str]) -> None:
    left = Session.objects.filter(pk__in=discovery.find_undetermined())
    for session_id, owner_id in left.values_list("pk", "owner_id"):
        if only and session_id not in only:
            continue
        if owner_id in alive:
            report.alive += 1
        else:
            report.undetermined += 1


def _look_only(only: Collection[str], override: plan.Policy | None) -> Report:
    """What a pass would claim now, without writing anything."""
    report = Report(dry_run=True)
    now = timezone.now()
    orphans = discovery.look_for_orphans()
    for orphan in orphans:
        if not only or orphan.session_id in only:
            foreseen = foresee(orphan, now=now, override=override)
            if foreseen is not None:
                report.found += 1
                report.count(foreseen)
    seen = {orphan.session_id for orphan in orphans}
    report.undetermined = len(
        [pk for pk in discovery.find_undetermined() if pk not in seen and (not only or pk in only)]
    )
    return report
