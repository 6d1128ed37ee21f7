"""The claim: what makes one recovery of one orphan at one boundary exclusive."""

from django.db import models

from schema.ids import MAX_LENGTH
from sessions_app.models import Session


class RecoveryClaim(models.Model):
    """One recovery, with what it found and did. Only ever inserted, with all it did, in one transaction."""

    id = models.CharField(primary_key=True, max_length=MAX_LENGTH)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="claims")
    boundary_seq = models.BigIntegerField()
    lost_fence = models.BigIntegerField()
    lost_owner = models.CharField(max_length=MAX_LENGTH, blank=True, default="")
    worker = models.CharField(max_length=MAX_LENGTH, blank=True, default="")
    death = models.CharField(max_length=20)
    """proved or assumed; own: a stray of the worker itself; none: nobody owned the session."""
    outcome = models.CharField(max_length=20)
    found = models.JSONField()
    continuation = models.CharField(max_length=MAX_LENGTH, blank=True, default="")
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["session", "boundary_seq"], name="claim_boundary"),
            models.UniqueConstraint(fields=["session", "lost_fence"], name="claim_fence"),
        ]
        indexes = [models.Index(fields=["-created_at", "-id"], name="claim_newest")]

    def __str__(self) -> str:
        return self.id
