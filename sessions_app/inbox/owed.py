"""The run owed: the durable fact that a session needs a drain although no input is pending."""

from datetime import datetime

from sessions_app.log import SessionTransaction


def owe(tx: SessionTransaction, *, not_before: datetime) -> None:
    """A run is owed, not before that time; of two times the later holds."""
    already = tx.session.owed_at
    tx.set(owed_at=not_before if already is None else max(already, not_before))


def owe_inquiry(tx: SessionTransaction, *, attempt_id: str) -> None:
    """A run is owed that first asks the provider of an unknown attempt what became of it."""
    tx.set(inquiry=attempt_id)
    owe(tx, not_before=tx.now)


def clear(tx: SessionTransaction) -> None:
    tx.set(owed_at=None, inquiry="")
