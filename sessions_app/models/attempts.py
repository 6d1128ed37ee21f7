"""One physical request to a provider."""

from django.db import models

from sessions_app.models.fields import NAME_LENGTH, UNDECIDED, identity, of_user, word
from sessions_app.models.messages import SessionMessage
from sessions_app.models.sessions import Session


class ProviderAttempt(models.Model):
    """Facts before the wire and after it, each with the time it became durable."""

    id = identity()
    session = models.ForeignKey(Session, on_delete=models.CASCADE, db_index=False, related_name="attempts")
    user = of_user()
    message = models.ForeignKey(
        SessionMessage, null=True, blank=True, on_delete=models.CASCADE, related_name="attempts"
    )
    purpose = word()
    ordinal = models.IntegerField()
    state = word()
    outcome = word(blank=True, default="")
    finish = word(blank=True, default="")
    error = models.JSONField(null=True, blank=True)
    provider = models.CharField(max_length=NAME_LENGTH)
    model = models.CharField(max_length=NAME_LENGTH)
    request_digest = models.CharField(max_length=64)
    client_request_id = models.CharField(max_length=80)
    provider_request_id = models.CharField(max_length=200, blank=True, default="")
    provider_response_id = models.CharField(max_length=200, blank=True, default="")
    status = models.IntegerField(null=True, blank=True)
    hosted_tools = models.BooleanField(default=False)
    may_be_billed = models.BooleanField(default=False)
    usage = models.JSONField(null=True, blank=True)
    prepared_at = models.DateTimeField()
    dispatched_at = models.DateTimeField(null=True, blank=True)
    headers_at = models.DateTimeField(null=True, blank=True)
    first_output_at = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField(null=True, blank=True)
    unknown_at = models.DateTimeField(null=True, blank=True)
    decision = models.JSONField(null=True, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["session", "prepared_at"], name="attempt_list"),
            models.Index(fields=["user", "-prepared_at", "-id"], name="attempt_of_user"),
            models.Index(
                fields=["session"],
                name="attempt_unsettled",
                condition=models.Q(settled_at__isnull=True, unknown_at__isnull=True),
            ),
            models.Index(fields=["session"], name="attempt_undecided", condition=UNDECIDED),
            models.Index(
                fields=["user", "-prepared_at", "-id"], name="attempt_undecided_of_user", condition=UNDECIDED
            ),
        ]

    def __str__(self) -> str:
        return self.id
