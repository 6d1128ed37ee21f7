"""The transcript: messages, their parts, and the text so far of parts that are open."""

from typing import Final

from django.db import models

from schema.ids import MAX_LENGTH
from sessions_app.models.fields import (
    NAME_LENGTH,
    UNDECIDED,
    identity,
    of_user,
    position,
    position_or_none,
    word,
)
from sessions_app.models.sessions import Session

WAITING: Final = models.Q(ended_at__isnull=True, approval="waiting")
"""A call that waits for a person's answer."""


class SessionMessage(models.Model):
    """One entry of the transcript, in the order of the events that created them."""

    id = identity()
    session = models.ForeignKey(Session, on_delete=models.CASCADE, db_index=False, related_name="messages")
    seq = position()
    type = word()
    state = word()
    created_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True, blank=True)
    origin = word(blank=True, default="")
    text = models.TextField(blank=True, default="")
    agent = models.CharField(max_length=NAME_LENGTH, blank=True, default="")
    model = models.CharField(max_length=NAME_LENGTH, blank=True, default="")
    finish = word(blank=True, default="")
    error = models.JSONField(null=True, blank=True)
    notice = models.TextField(blank=True, default="")
    usage = models.JSONField(null=True, blank=True)
    retry = models.JSONField(null=True, blank=True)
    """The retry that waits for its time, as retry.scheduled told it."""
    reverted_seq = position_or_none()

    class Meta:
        ordering = ["session_id", "seq"]
        constraints = [models.UniqueConstraint(fields=["session", "seq"], name="message_position")]
        indexes = [
            models.Index(
                fields=["session"],
                name="message_unfinished",
                condition=models.Q(completed_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return self.id


class MessagePart(models.Model):
    """A piece of an assistant message, settled by itself."""

    id = identity()
    message = models.ForeignKey(
        SessionMessage, on_delete=models.CASCADE, db_index=False, related_name="parts"
    )
    session = models.ForeignKey(Session, on_delete=models.CASCADE, db_index=False, related_name="parts")
    user = of_user()
    index = models.IntegerField()
    kind = word()
    state = word()
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    text = models.TextField(blank=True, default="")
    complete = models.BooleanField(default=False)
    """False for text and reasoning that was cut: cut reasoning is never sent back."""
    replay = models.JSONField(null=True, blank=True)
    """What the provider wants back with it: a signature, encrypted content, an item id."""

    call_id = models.CharField(max_length=NAME_LENGTH, blank=True, default="")
    name = models.CharField(max_length=NAME_LENGTH, blank=True, default="")
    raw_input = models.TextField(blank=True, default="")
    input = models.JSONField(null=True, blank=True)
    input_digest = models.CharField(max_length=64, blank=True, default="")
    effect = word(blank=True, default="")
    annotations = models.JSONField(null=True, blank=True)
    hosted = models.BooleanField(default=False)
    approval = word(blank=True, default="")
    """Empty, waiting, approved or denied."""
    approval_reason = word(blank=True, default="")
    earlier = models.CharField(max_length=MAX_LENGTH, blank=True, default="")
    """The unknown call that this one would repeat."""
    called_at = models.DateTimeField(null=True, blank=True)
    progress = models.TextField(blank=True, default="")
    output = models.TextField(blank=True, default="")
    overflow = models.CharField(max_length=MAX_LENGTH, blank=True, default="")
    error = models.TextField(blank=True, default="")
    unknown_at = models.DateTimeField(null=True, blank=True)
    """When its outcome became unknown: it was entered and did not return."""
    decision = models.JSONField(null=True, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["message_id", "index"]
        constraints = [models.UniqueConstraint(fields=["message", "index"], name="part_position")]
        indexes = [
            models.Index(fields=["session", "started_at"], name="part_list"),
            models.Index(
                fields=["user", "-started_at", "-id"], name="call_of_user", condition=models.Q(kind="tool")
            ),
            models.Index(
                fields=["user", "-started_at", "-id"],
                name="call_undecided_of_user",
                condition=UNDECIDED | WAITING,
            ),
            models.Index(
                fields=["session"], name="part_unfinished", condition=models.Q(ended_at__isnull=True)
            ),
            models.Index(
                fields=["session", "input_digest"],
                name="part_unknown",
                condition=models.Q(unknown_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.id


class ToolOverflow(models.Model):
    """The whole output of a call whose part keeps only its beginning."""

    id = identity()
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="overflows")
    created_at = models.DateTimeField()
    content = models.BinaryField()
    is_text = models.BooleanField()

    def __str__(self) -> str:
        return self.id


class PartCheckpoint(models.Model):
    """The text so far of an open part. Operational: it goes when the part ends, replay never makes one."""

    part = models.OneToOneField(
        MessagePart, primary_key=True, on_delete=models.CASCADE, related_name="checkpoint"
    )
    fence = models.BigIntegerField()
    text = models.TextField()

    def __str__(self) -> str:
        return self.part_id
