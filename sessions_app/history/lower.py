"""Lowering: from the transcript to the turns that a provider accepts.

Pure, deterministic and idempotent: the same transcript and model give the same turns, so that the
provider's prompt cache stays warm, and nothing here ever changes the log.
"""

from collections.abc import Iterable, Sequence

from schema.turns import AssistantBlock, AssistantTurn, ReasoningBlock, TextBlock, Turn, UserTurn
from sessions_app.history import notices
from sessions_app.history.entries import Entry, PartEntry


def lower(
    entries: Sequence[Entry], *, model: str, is_last_step: bool = False
) -> tuple[Turn, ...]:
    """The turns of the next request to ``model`` (``provider:model``).

    Assistant turns are never empty and never adjacent, reasoning goes back only complete, signed and to
    the model that wrote it, and the last turn is never the assistant's. The last step is told that no
    tools are left.
    """
    turns = list(_merge(turn for entry in entries for turn in _turns(entry, model)))
    if is_last_step:
        turns.append(UserTurn(origin="notice", text=notices.NO_STEPS_LEFT))
    if not turns or isinstance(turns[-1], AssistantTurn):
        turns.append(UserTurn(origin="notice", text=notices.GO_ON))
    return tuple(turns)


def _turns(entry: Entry, model: str) -> Iterable[Turn]:
    if entry.type != "assistant":
        if entry.text.strip():
            yield UserTurn(origin=entry.origin, text=entry.text)
        return
    blocks = tuple(_blocks(entry, model))
    if blocks:
        yield AssistantTurn(blocks=blocks)
    notice = _notice(entry, has_output=bool(blocks))
    if notice:
        yield UserTurn(origin="notice", text=notice)


def _blocks(entry: Entry, model: str) -> Iterable[AssistantBlock]:
    for part in entry.parts:
        if part.kind == "text" and part.text.strip():
            yield TextBlock(text=part.text)
        elif part.kind == "reasoning" and _may_go_back(part, entry, model):
            yield ReasoningBlock(text=part.text, replay=dict(part.replay or {}))


def _may_go_back(part: PartEntry, entry: Entry, model: str) -> bool:
    """A signature holds only for whole reasoning, in a finished answer, at the model that gave it."""
    return bool(part.replay) and part.complete and entry.state == "completed" and entry.model == model


def _notice(entry: Entry, *, has_output: bool) -> str:
    """Interrupted and unknown steps are always told; a failed one only where it left something."""
    if entry.state == "failed" and not has_output:
        return ""
    return entry.notice or notices.notice_for(entry.state)


def _merge(turns: Iterable[Turn]) -> Iterable[Turn]:
    """Join adjacent turns of the assistant; what lay between them had nothing to say."""
    last: AssistantTurn | None = None
    for turn in turns:
        if isinstance(turn, AssistantTurn):
            last = turn if last is None else AssistantTurn(blocks=last.blocks + turn.blocks)
            continue
        if last is not None:
            yield last
            last = None
        yield turn
    if last is not None:
        yield last
