"""What becomes of the calls a model made: pure, one call at a time."""

import hashlib
import json
from dataclasses import dataclass
from typing import Final

from sessions_app.agents import AgentChoice
from sessions_app.tools import arguments
from sessions_app.tools.port import BadArguments, Input, Tool, Toolset

MALFORMED: Final = "Tool call arguments were malformed JSON and were not executed. Retry with valid JSON."
CUT_SHORT: Final = (
    "The answer reached the model's limit before the arguments of this call were complete, so that it was "
    "not executed. Make the call again with shorter arguments."
)
NO_STEPS_LEFT: Final = "Tools are disabled after the maximum agent steps"
REPEATED_ID: Final = "Another call of this answer has the same id; this one was not executed."
DENIED: Final = "The user denied this call; it was not executed."


@dataclass(frozen=True, kw_only=True)
class Enter:
    """The call may be entered as soon as that is durable."""

    part_id: str
    tool: Tool
    input: Input
    digest: str


@dataclass(frozen=True, kw_only=True)
class Ask:
    """The call waits for a person."""

    part_id: str
    tool: Tool
    input: Input
    digest: str


@dataclass(frozen=True, kw_only=True)
class Refuse:
    """The call is not run; the model is told why."""

    part_id: str
    error: str


Plan = Enter | Ask | Refuse


def plan(
    *, part_id: str, name: str, raw: str, toolset: Toolset, agent: AgentChoice, has_steps_left: bool
) -> Plan:
    """Decide one local call by itself; whether it repeats an unknown one is asked separately."""
    if not has_steps_left:
        return Refuse(part_id=part_id, error=NO_STEPS_LEFT)
    tool = toolset.find(name)
    if tool is None:
        return Refuse(part_id=part_id, error=toolset.missing(name))
    mode = agent.mode_of(name)
    if mode == "deny":
        return Refuse(part_id=part_id, error=f"The tool {name} is not allowed here.")
    given = arguments.parse(raw)
    if given is None:
        return Refuse(part_id=part_id, error=MALFORMED)
    try:
        normalised = tool.normalise(given)
    except BadArguments as bad:
        return Refuse(part_id=part_id, error=str(bad))
    decided = Ask if mode == "ask" else Enter
    return decided(part_id=part_id, tool=tool, input=normalised, digest=digest(name, normalised))


def digest(name: str, normalised: Input) -> str:
    """SHA-256 (hex) of the tool's name and its canonical input: equal for equal calls."""
    canonical = json.dumps([name, normalised], sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()
