"""What the core's hooks call: the periodic sweep, an orphan that was met, an outcome that became unknown."""

from datetime import datetime

from django.conf import settings
from django.utils import timezone

from recovery import plan, policy, recover, service, settle
from sessions_app import hooks, inbox, ownership
from sessions_app.log import SessionTransaction
from sessions_app.models import MessagePart, ProviderAttempt, Worker


def sweep(now: datetime, worker_id: str) -> None:
    """Recover every orphan, wake everything that is due, forget workers that ended long ago.

    What took wakes from the queue before this worker started may have ended with them, and the queue gives
    them back only after its retry time: nobody has to wait that long after a restart.
    """
    clock = service.going_on_from(now)
    for _ in service.recover_orphans(worker_id=worker_id, now=now):
        pass
    started_at = Worker.objects.filter(pk=worker_id).values_list("started_at", flat=True).first()
    service.wake_due(now=clock(), spent_before=started_at)
    ownership.prune(now=clock(), run_dir=settings.HOLDFAST_RUN_DIR)


def orphan_found(session_id: str, worker_id: str) -> None:
    service.recover_one(session_id, worker_id, now=timezone.now())


def outcome_unknown(tx: SessionTransaction, unknown: hooks.Unknown) -> None:
    """The same policy and budget as for a crash, in the transaction that fails the step.

    A shutdown that had to cut a call goes by the policy and spends no budget. A provider that can be asked
    is asked first. Where somebody decided before, that stands, and nothing follows.
    """
    made = _plan(tx, unknown)
    if not made.unknown_attempts and not made.unknown_calls:
        return
    if made.go_on in ("continue", "inquire") and not _is_free(unknown):
        tx.set(recovery_count=tx.session.recovery_count + 1)
    settle.go_on(tx, made, continuation_id=recover.continuation_id(unknown.source))


def _is_free(unknown: hooks.Unknown) -> bool:
    """Whether it spends no budget: a shutdown is no crash, and what was counted counts once."""
    return unknown.is_shutdown or unknown.is_counted


def _plan(tx: SessionTransaction, unknown: hooks.Unknown) -> plan.Plan:
    attempts = list(
        ProviderAttempt.objects.filter(
            message_id=unknown.message_id, unknown_at__isnull=False, decided_at=None
        )
    )
    calls = list(
        MessagePart.objects.filter(message_id=unknown.message_id, unknown_at__isnull=False, decided_at=None)
    )
    effective = policy.effective(tx.session)
    go_on = plan.by_policy(
        policy=effective.policy,
        continues_after_effects=effective.continues_after_effects,
        may_repeat_an_effect=any(
            plan.is_repeatable_effect(effect=call.effect, hosted=call.hosted) for call in calls
        )
        or any(attempt.hosted_tools for attempt in attempts),
        can_be_asked=unknown.can_be_asked,
    )
    if not _is_free(unknown) and tx.session.recovery_count >= settings.HOLDFAST_RECOVERY_BUDGET:
        go_on = "park"
    has_steer = inbox.wants_wake(tx.session, delivery="steer", origin="user")
    return plan.Plan(
        actions=(),
        go_on=go_on,
        inquiry=unknown.source if go_on == "inquire" else "",
        unknown_attempts=tuple(attempt.pk for attempt in attempts),
        unknown_calls=tuple(call.pk for call in calls),
        admits_continuation=go_on == "continue" and not has_steer,
    )
