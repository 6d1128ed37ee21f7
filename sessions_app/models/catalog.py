"""What an administrator configures."""

from django.db import models

from sessions_app.models import agent_fields
from sessions_app.models.fields import NAME_LENGTH


class Agent(models.Model):
    """How a session talks: its instructions, and the model it starts with."""

    name = models.CharField(primary_key=True, max_length=NAME_LENGTH)
    system = models.TextField(blank=True, default="")
    model = models.CharField(max_length=NAME_LENGTH, blank=True, default="")
    """``provider:model`` for new sessions of this agent; empty: the site's default."""

    recovery_policy = models.CharField(
        max_length=20,
        blank=True,
        default="",
        choices=[("continue", "continue"), ("ask", "ask"), ("off", "off")],
    )
    """What happens by itself after an unknown outcome; empty: the site's."""
    continues_after_effects = models.BooleanField(default=False)
    """Whether to go on by itself even when a call with a side effect is unknown."""
    steps = models.PositiveIntegerField(default=25)
    """How many steps may follow one prompt; the last one offers no tools."""
    tool_modes = models.JSONField(default=dict, blank=True, validators=[agent_fields.validate_tool_modes])
    """Tool name to allow, ask or deny; ``*`` stands for every tool that is not named. Unnamed: allow."""
    hosted_tools = models.JSONField(
        default=dict,
        blank=True,
        validators=[agent_fields.validate_hosted_tools],
        help_text=(
            "Tools that a provider runs itself, written as its API takes them: "
            '{"openai-responses": [{"type": "web_search"}], '
            '"anthropic": [{"type": "web_search_20250305", "name": "web_search"}]}. '
            "What they did cannot be proved: after an unknown outcome a person is asked before anything goes on."
        ),
    )
    """Provider to the tools that it is offered to run; see ``models.agent_fields``."""

    def __str__(self) -> str:
        return self.name


class McpServer(models.Model):
    """A server whose tools are added under its name as prefix."""

    name = models.CharField(primary_key=True, max_length=40)
    transport = models.CharField(max_length=20, choices=[("http", "Streamable HTTP"), ("stdio", "stdio")])
    url = models.CharField(max_length=1000, blank=True, default="")
    command = models.CharField(max_length=200, blank=True, default="")
    """A name of the allow-list HOLDFAST_MCP_COMMANDS, never a command line."""
    authorization_variable = models.CharField(max_length=200, blank=True, default="")
    """The environment variable that holds the Authorization header; the secret itself is never stored."""
    trusted = models.BooleanField(default=False)
    """Whether the hints of its tools are believed."""
    enabled = models.BooleanField(default=True)
    timeout_seconds = models.PositiveIntegerField(default=60)

    def __str__(self) -> str:
        return self.name
