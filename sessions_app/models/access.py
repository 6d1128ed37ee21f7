"""How programmers and the first administrator get in. Secrets are stored as digests only."""

from django.conf import settings
from django.db import models


class ApiToken(models.Model):
    """A token for the API with its user's own rights. Shown once, when it is made."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100, blank=True, default="")
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name or f"token {self.pk}"


class SetupLink(models.Model):
    """The one-time link that creates the first administrator."""

    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"setup link {self.pk}"
