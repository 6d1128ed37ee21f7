"""What an administrator configures."""

from django.db import models

from sessions_app.models.fields import NAME_LENGTH


class Agent(models.Model):
    """How a session talks: its instructions, and the model it starts with."""

    name = models.CharField(primary_key=True, max_length=NAME_LENGTH)
    system = models.TextField(blank=True, default="")
    model = models.CharField(max_length=NAME_LENGTH, blank=True, default="")
    """``provider:model`` for new sessions of this agent; empty: the site's default."""

    def __str__(self) -> str:
        return self.name
