"""The agents a session can be given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, cast

from django.conf import settings
from pydantic import JsonValue

from schema.events import RecoveryPolicy
from schema.problems import InvalidValue
from sessions_app.models import Agent, Session, statements

DEFAULT: Final = "default"
DEFAULT_STEPS: Final = 25

ToolMode = Literal["allow", "ask", "deny"]


@dataclass(frozen=True, kw_only=True)
class AgentChoice:
    """An agent as a session uses it: instructions, the model a new session starts with, its tools."""

    name: str
    system: str
    model: str
    steps: int = DEFAULT_STEPS
    tool_modes: Mapping[str, ToolMode] = field(default_factory=dict)
    hosted_tools: Mapping[str, Sequence[Mapping[str, JsonValue]]] = field(default_factory=dict)
    """Provider to the tools that it may run itself, as its API takes them."""
    recovery_policy: str = ""
    continues_after_effects: bool = False

    def mode_of(self, tool: str) -> ToolMode:
        """What the agent may do with a tool: allow, ask or deny. ``*`` speaks for what is not named."""
        return self.tool_modes.get(tool) or self.tool_modes.get("*") or "allow"


def agents() -> list[AgentChoice]:
    """All agents, the default first. An administrator may give the default other instructions."""
    rows = {row.name: _choice(row) for row in Agent.objects.order_by("name")}
    default = rows.pop(DEFAULT, None) or _built_in()
    return [default, *rows.values()]


def find_agent(name: str) -> AgentChoice | None:
    row = statements.first(Agent, {"pk": name})
    if row is not None:
        return _choice(row)
    return _built_in() if name == DEFAULT else None


def get_agent(name: str) -> AgentChoice:
    """Raises InvalidValue for an agent that does not exist (any more)."""
    agent = find_agent(name)
    if agent is None:
        raise InvalidValue(
            field="agent", detail=f"Agent {name!r} does not exist. GET /api/v1/agents lists the agents."
        )
    return agent


def _choice(row: Agent) -> AgentChoice:
    return AgentChoice(
        name=row.name,
        system=row.system,
        model=row.model or settings.HOLDFAST_DEFAULT_MODEL,
        steps=max(1, row.steps),
        tool_modes=row.tool_modes,
        hosted_tools=row.hosted_tools,
        recovery_policy=row.recovery_policy,
        continues_after_effects=row.continues_after_effects,
    )


def _built_in() -> AgentChoice:
    return AgentChoice(name=DEFAULT, system="", model=settings.HOLDFAST_DEFAULT_MODEL)


def recovery_policy(session: Session, of_agent: str) -> RecoveryPolicy:
    """The policy that counts for a session: its own, its agent's, the site's."""
    chosen = session.recovery_policy or of_agent or settings.HOLDFAST_RECOVERY_POLICY
    return cast("RecoveryPolicy", chosen)
