"""A session and its log."""

from django.conf import settings
from django.db import models

from schema.ids import MAX_LENGTH
from sessions_app.models.fields import NAME_LENGTH, identity, position, position_or_none, word
from sessions_app.models.workers import Worker


class Session(models.Model):
    """One conversation: what the log says of it, and what running it needs."""

    id = identity()
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, db_index=False)
    created_at = models.DateTimeField()

    title = models.CharField(max_length=NAME_LENGTH, blank=True, default="")
    agent = models.CharField(max_length=NAME_LENGTH)
    model = models.CharField(max_length=NAME_LENGTH)
    recovery_policy = word(blank=True, default="")
    archived = models.BooleanField(default=False)
    pinned = models.BooleanField(default=False)
    active_at = models.DateTimeField()
    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    cost = models.DecimalField(max_digits=20, decimal_places=10, null=True, blank=True, default=None)
    """US dollars, of the attempts whose cost is known; empty while there is none."""
    uncounted_attempts = models.IntegerField(default=0)
    """Attempts that may have been billed and whose usage nobody told."""
    head_seq = position(default=0)
    staged_revert = models.CharField(max_length=MAX_LENGTH, blank=True, default="")
    """The message from which on the transcript is hidden once the next prompt comes."""

    owner = models.ForeignKey(
        Worker, null=True, blank=True, on_delete=models.PROTECT, db_index=False, related_name="owned"
    )
    fence = models.BigIntegerField(default=0)
    owed_at = models.DateTimeField(null=True, blank=True)
    """A run is owed, and may start from this time on; empty when none is."""
    inquiry = models.CharField(max_length=MAX_LENGTH, blank=True, default="")
    """The unknown attempt that the run owed asks its provider about before anything goes on."""
    step_count = models.IntegerField(default=0)
    hold_seq = position_or_none()
    """What was pending up to here waits."""
    hold_reason = word(blank=True, default="")
    interrupt_fence = models.BigIntegerField(null=True, blank=True)
    interrupt_seq = position_or_none()
    interrupt_resume = models.BooleanField(default=False)
    parked = models.BooleanField(default=False)
    recovery_count = models.IntegerField(default=0)
    recovering = models.ForeignKey(
        Worker, null=True, blank=True, on_delete=models.PROTECT, db_index=False, related_name="recovering"
    )
    wake_enqueued_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["user", "-active_at", "-id"], name="session_list"),
            models.Index(
                fields=["user", "-active_at", "-id"], name="session_pinned", condition=models.Q(pinned=True)
            ),
            models.Index(fields=["owner"], name="session_owned", condition=models.Q(owner__isnull=False)),
            models.Index(fields=["active_at"], name="session_parked", condition=models.Q(parked=True)),
            models.Index(fields=["owed_at"], name="session_owed", condition=models.Q(owed_at__isnull=False)),
            models.Index(
                fields=["owner"],
                name="session_interrupt",
                condition=models.Q(interrupt_fence__isnull=False),
            ),
            models.Index(
                fields=["recovering"],
                name="session_recovering",
                condition=models.Q(recovering__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.id


class SessionEvent(models.Model):
    """One durable fact. Rows are only ever inserted."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, db_index=False, related_name="events")
    seq = position()
    type = word(length=40)
    version = models.SmallIntegerField()
    data = models.JSONField()
    time = models.DateTimeField()

    class Meta:
        ordering = ["session_id", "seq"]
        constraints = [models.UniqueConstraint(fields=["session", "seq"], name="event_position")]

    def __str__(self) -> str:
        return f"{self.session_id} {self.seq} {self.type}"


class Tombstone(models.Model):
    """The id of a deleted session, message or attempt: never free again."""

    id = identity()
    deleted_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.id
