"""The inbox: what was admitted, and what became of it."""

from datetime import datetime
from typing import Self

from django.db import models

from schema.events import PromptAdmitted
from sessions_app.models.fields import identity, position, position_or_none, word
from sessions_app.models.sessions import Session

PENDING = models.Q(promoted_seq__isnull=True, withdrawn_seq__isnull=True)


class SessionInput(models.Model):
    """An admitted prompt: pending until promoted or withdrawn. Its id is never freed."""

    id = identity()
    session = models.ForeignKey(Session, on_delete=models.CASCADE, db_index=False, related_name="inputs")
    origin = word()
    text = models.TextField()
    digest = models.CharField(max_length=64)
    delivery_admitted = word()
    delivery = word()
    wake = models.BooleanField()
    created_at = models.DateTimeField()
    admitted_seq = position()
    promoted_seq = position_or_none()
    withdrawn_seq = position_or_none()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "admitted_seq"], name="input_admitted_once"),
            models.CheckConstraint(
                condition=models.Q(promoted_seq__isnull=True) | models.Q(withdrawn_seq__isnull=True),
                name="input_promoted_or_withdrawn",
            ),
        ]
        indexes = [
            models.Index(fields=["session", "admitted_seq"], name="input_pending", condition=PENDING),
        ]

    def __str__(self) -> str:
        return self.id

    @classmethod
    def admitted(cls, event: PromptAdmitted, *, session_id: str, seq: int, at: datetime) -> Self:
        """The row that the event makes, not stored yet."""
        return cls(
            id=event.message,
            session_id=session_id,
            origin=event.origin,
            text=event.text,
            digest=event.digest,
            delivery_admitted=event.delivery,
            delivery=event.delivery,
            wake=event.wake,
            created_at=at,
            admitted_seq=seq,
        )
