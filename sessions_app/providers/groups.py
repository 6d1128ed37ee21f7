"""Turns grouped by role, as every wire format wants them: alternating, the user first and last. Pure."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from schema.turns import AssistantBlock, AssistantTurn, CallBlock, ResultTurn, TextBlock, ToolDefinition, Turn

OPENING: Final = "(The conversation begins with the assistant.)"
GO_ON: Final = "(Go on.)"
NO_OUTPUT: Final = "(no output)"
NOT_OFFERED: Final = "This tool cannot be called any more."


@dataclass
class UserGroup:
    """What the model reads next: results first, since they must follow their calls directly."""

    results: list[ResultTurn] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


@dataclass
class AssistantGroup:
    """What the model said: its calls last, since nothing may stand between them and their results."""

    blocks: list[AssistantBlock] = field(default_factory=list)

    @property
    def calls(self) -> list[CallBlock]:
        return [block for block in self.blocks if isinstance(block, CallBlock) and not block.hosted]

    @property
    def texts(self) -> list[str]:
        """What it said; a call that a provider ran is told here, for formats that have no place for it."""
        return [
            block.text if isinstance(block, TextBlock) else hosted_note(block)
            for block in self.blocks
            if isinstance(block, TextBlock) or (isinstance(block, CallBlock) and block.hosted)
        ]


Group = UserGroup | AssistantGroup


def group(turns: Iterable[Turn], *, calls_last: bool = True) -> list[Group]:
    """The turns, neighbours of one role together. Starts and ends with the user; nothing in it is empty.

    ``calls_last`` moves local calls to the end of what the assistant said; without it the order stays.
    """
    gathered: list[Group] = []
    for turn in turns:
        _add(gathered, _group_of(turn))
    groups: list[Group] = []
    for each in gathered:
        _add(groups, _sendable(each, calls_last=calls_last))
    if not groups or isinstance(groups[0], AssistantGroup):
        groups.insert(0, UserGroup(texts=[OPENING]))
    if isinstance(groups[-1], AssistantGroup):
        groups.append(UserGroup(texts=[GO_ON]))
    return groups


def _group_of(turn: Turn) -> Group:
    if isinstance(turn, AssistantTurn):
        return AssistantGroup(blocks=list(turn.blocks))
    if isinstance(turn, ResultTurn):
        return UserGroup(results=[turn])
    return UserGroup(texts=[turn.text] if turn.text.strip() else [])


def _add(groups: list[Group], addition: Group) -> None:
    last = groups[-1] if groups else None
    match (last, addition):
        case (UserGroup(), UserGroup(results=results, texts=texts)):
            last.results += results
            last.texts += texts
        case (AssistantGroup(), AssistantGroup(blocks=blocks)):
            last.blocks += blocks
        case (_, UserGroup(results=[], texts=[])) | (_, AssistantGroup(blocks=[])):
            pass
        case _:
            groups.append(addition)


def _sendable(each: Group, *, calls_last: bool) -> Group:
    """No empty text, and no reasoning at the end, where providers refuse it."""
    if isinstance(each, UserGroup):
        return each
    blocks = [block for block in each.blocks if block.kind != "text" or block.text.strip()]
    if calls_last:
        blocks.sort(key=lambda block: isinstance(block, CallBlock) and not block.hosted)
    while blocks and blocks[-1].kind == "reasoning":
        blocks.pop()
    return AssistantGroup(blocks=blocks)


def output_of(result: ResultTurn) -> str:
    """What a result says; never empty, which some providers refuse."""
    return result.output if result.output.strip() else NO_OUTPUT


def wire_name(name: str) -> str:
    """The name of a tool as every provider takes it, also when a model made it up."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unnamed"


def hosted_note(call: CallBlock) -> str:
    """A call that its provider ran, and its result, in words."""
    given = json.dumps(call.input, ensure_ascii=False)
    output = "" if call.result is None else call.result.output.strip()
    return (
        f"[{call.name or 'A tool'} was run by the provider with {given}. Its result: {output or NO_OUTPUT}]"
    )


def stubs(turns: Iterable[Turn]) -> list[ToolDefinition]:
    """A definition for each tool that the history calls, for a request that offers none of its own."""
    names = {
        wire_name(block.name): None
        for turn in turns
        if isinstance(turn, AssistantTurn)
        for block in turn.blocks
        if isinstance(block, CallBlock) and not block.hosted
    }
    return [
        ToolDefinition(name=name, description=NOT_OFFERED, parameters={"type": "object", "properties": {}})
        for name in names
    ]
