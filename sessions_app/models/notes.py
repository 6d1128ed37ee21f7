"""Notes that a model keeps for itself."""

from django.db import models

from sessions_app.models.fields import NAME_LENGTH
from sessions_app.models.sessions import Session


class SessionNote(models.Model):
    """A named text of one session. Operational: a tool's effect, not a projection of the log."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, db_index=False, related_name="notes")
    name = models.CharField(max_length=NAME_LENGTH)
    text = models.TextField()
    updated_at = models.DateTimeField()

    class Meta:
        ordering = ["session_id", "name"]
        constraints = [models.UniqueConstraint(fields=["session", "name"], name="note_name")]

    def __str__(self) -> str:
        return f"{self.session_id} {self.name}"
