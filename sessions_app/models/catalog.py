"""What an administrator configures."""

from decimal import Decimal
from typing import Final

from django.core.validators import MinValueValidator, RegexValidator
from django.db import models

from sessions_app.models import agent_fields
from sessions_app.models.fields import NAME_LENGTH, identity, word

MAX_PROVIDER_NAME: Final = 40
MAX_MODEL_NAME: Final = 150
LIMITS: Final = (
    "connect_seconds",
    "first_output_seconds",
    "silence_seconds",
    "keep_alive_seconds",
    "attempt_seconds",
)
PRICES: Final = ("input_price", "output_price", "cache_read_price", "cache_write_price")


class Provider(models.Model):
    """A server that speaks a known wire format, under a name that models are asked by."""

    name = models.CharField(
        primary_key=True,
        max_length=MAX_PROVIDER_NAME,
        validators=[
            RegexValidator(
                r"\A[a-z][a-z0-9_-]*\Z", "Small letters, digits, - and _, beginning with a letter."
            )
        ],
        help_text="What stands before the colon of its models: name:model.",
    )
    label = models.CharField(max_length=NAME_LENGTH, blank=True, default="")
    wire_format = models.CharField(
        max_length=20,
        choices=[
            ("chat", "OpenAI chat completions"),
            ("responses", "OpenAI Responses"),
            ("messages", "Anthropic messages"),
        ],
    )
    base_url = models.CharField(
        max_length=1000,
        verbose_name="base URL",
        help_text=(
            "Where the vendor's SDK would be pointed: it ends in /v1 for OpenAI's formats, and has no path "
            "for Anthropic's."
        ),
    )
    key_variable = models.CharField(
        max_length=NAME_LENGTH,
        blank=True,
        default="",
        help_text=(
            "The environment variable of web and workers that holds the key. The key itself is never stored. "
            "Empty: the server needs none."
        ),
    )
    keeps_responses = models.BooleanField(
        default=False,
        help_text="Responses only: the server has background mode and can be asked for a response later.",
    )
    enabled = models.BooleanField(default=True)

    def __str__(self) -> str:
        return self.name


def _seconds(text: str) -> "models.FloatField[float | None, float | None]":
    return models.FloatField(null=True, blank=True, validators=[MinValueValidator(0.1)], help_text=text)


def _price(text: str = "") -> "models.DecimalField[Decimal | None, Decimal | None]":
    return models.DecimalField(
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text=text,
    )


class ChatModel(models.Model):
    """A model of a provider, built in or named: what is known of it, and how long it may take.

    Models without a row work too, with the limits of the site and no prices.
    """

    provider = models.CharField(max_length=MAX_PROVIDER_NAME)
    model = models.CharField(
        max_length=MAX_MODEL_NAME, help_text="Its name at the provider, as it stands behind the colon."
    )
    label = models.CharField(max_length=NAME_LENGTH, blank=True, default="")
    enabled = models.BooleanField(
        default=True, help_text="Off: it is not offered, and sessions that use it say so."
    )

    tools = models.BooleanField(default=True, help_text="Whether it can call tools; else none are offered.")
    context_tokens = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)], help_text="How much it can read."
    )
    max_output_tokens = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="The limit of one answer that is asked for; empty: the provider's.",
    )

    connect_seconds = _seconds("For the connection to stand.")
    first_output_seconds = _seconds("From the request to the first output.")
    silence_seconds = _seconds("Without a single byte after the first output.")
    keep_alive_seconds = _seconds("Without output while the server only says that it is alive.")
    attempt_seconds = _seconds("For the whole request.")

    input_price = _price("US dollars per million tokens.")
    output_price = _price()
    cache_read_price = _price("Empty: as other input.")
    cache_write_price = _price("Empty: as other input.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["provider", "model"], name="chat_model_name"),
            *(
                models.CheckConstraint(
                    condition=models.Q(**{f"{name}__isnull": True}) | models.Q(**{f"{name}__gt": 0}),
                    name=f"chat_model_{name}",
                )
                for name in LIMITS
            ),
            *(
                models.CheckConstraint(
                    condition=models.Q(**{f"{name}__isnull": True}) | models.Q(**{f"{name}__gte": 0}),
                    name=f"chat_model_{name}",
                )
                for name in PRICES
            ),
            models.CheckConstraint(
                condition=models.Q(input_price__isnull=True, output_price__isnull=True)
                | models.Q(input_price__isnull=False, output_price__isnull=False),
                name="chat_model_prices",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"


class ModelTest(models.Model):
    """One tiny request that an administrator made to see whether a model answers.

    It is an attempt like any other, with its facts before the wire and after it, and belongs to no session.
    One that was dispatched and has no end was cut off with its process: its outcome is unknown.
    """

    id = identity()
    provider = models.CharField(max_length=NAME_LENGTH)
    model = models.CharField(max_length=NAME_LENGTH)
    by = models.CharField(max_length=NAME_LENGTH)
    request_digest = models.CharField(max_length=64)
    prepared_at = models.DateTimeField()
    dispatched_at = models.DateTimeField(null=True, blank=True)
    headers_at = models.DateTimeField(null=True, blank=True)
    first_output_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    status = models.IntegerField(null=True, blank=True)
    provider_request_id = models.CharField(max_length=NAME_LENGTH, blank=True, default="")
    outcome = word(blank=True, default="")
    """Completed, or the class of its error."""
    finish = word(blank=True, default="")
    error = models.JSONField(null=True, blank=True)
    text = models.TextField(blank=True, default="")
    reasoning = models.TextField(blank=True, default="")
    usage = models.JSONField(null=True, blank=True)

    def __str__(self) -> str:
        return self.id


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
