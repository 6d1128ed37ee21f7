"""Lowering: from the transcript to the turns that a provider accepts.

Pure, deterministic and idempotent: the same transcript and model give the same turns, a transcript that
grew gives the turns it gave before and then more, so that the provider's prompt cache stays warm, and
nothing here ever changes the log.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from schema.turns import (
    AssistantBlock,
    AssistantTurn,
    CallBlock,
    HostedResult,
    ReasoningBlock,
    ResultTurn,
    TextBlock,
    Turn,
    UserTurn,
)
from sessions_app.history import calls, notices, verdicts
from sessions_app.history.calls import CallIds
from sessions_app.history.entries import Entry, PartEntry


def lower(entries: Sequence[Entry], *, model: str, is_last_step: bool = False) -> tuple[Turn, ...]:
    """The turns of the next request to ``model`` (``provider:model``).

    The user's turns come first and last. Assistant turns are never empty and never adjacent; each is
    followed at once by one result for each of its local calls, in their order. Reasoning goes back only
    complete, signed and to the model that wrote it. The last step is told that no tools are left.
    """
    ids = CallIds()
    turns = list(_spaced(turn for entry in entries for turn in _turns(entry, model, ids)))
    if is_last_step:
        turns.append(UserTurn(origin="notice", text=notices.NO_STEPS_LEFT))
    if not turns or isinstance(turns[-1], AssistantTurn):
        turns.append(UserTurn(origin="notice", text=notices.GO_ON))
    return tuple(turns)


def _turns(entry: Entry, model: str, ids: CallIds) -> Iterable[Turn]:
    if entry.type != "assistant":
        if entry.text.strip():
            yield UserTurn(origin=entry.origin, text=entry.text)
        return
    answer = _Answer(entry, model=model, ids=ids)
    if answer.blocks:
        yield AssistantTurn(blocks=tuple(answer.blocks))
    yield from answer.results
    notice = notices.with_calls(_notice(entry, has_output=bool(answer.blocks)), answer.lines)
    if notice:
        yield UserTurn(origin="notice", text=notice)


def _notice(entry: Entry, *, has_output: bool) -> str:
    """Interrupted and unknown steps are always told; a failed one only where it left something."""
    if entry.state == "failed" and not has_output:
        return ""
    return entry.notice if entry.notice.strip() else notices.notice_for(entry.state)


@dataclass
class _Answer:
    """One message of the assistant: what goes back as it was, and what is told in words instead."""

    entry: Entry
    model: str
    ids: CallIds
    blocks: list[AssistantBlock] = field(default_factory=list)
    results: list[ResultTurn] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    reasoning: list[ReasoningBlock] = field(default_factory=list)
    """Reasoning waits for what it led to: alone, or without it, no provider takes it back."""

    def __post_init__(self) -> None:
        for part in self.entry.parts:
            match part.kind:
                case "text":
                    self._text(part)
                case "reasoning":
                    self._reasoning(part)
                case "tool" if part.hosted:
                    self._hosted(part)
                case "tool":
                    self._local(part)

    def _add(self, block: AssistantBlock) -> None:
        self.blocks += self.reasoning
        self.reasoning.clear()
        self.blocks.append(block)

    def _text(self, part: PartEntry) -> None:
        if part.text.strip():
            self._add(TextBlock(text=part.text, replay=self._replay(part)))

    def _reasoning(self, part: PartEntry) -> None:
        """A signature holds only for whole reasoning, in a whole answer, at the model that gave it."""
        replay = self._replay(part)
        if replay and part.complete:
            self.reasoning.append(ReasoningBlock(text=part.text, replay=replay))

    def _local(self, part: PartEntry) -> None:
        """A call, and what became of it.

        One whose arguments broke off was never made: it is told in words, since no arguments could be
        given for it that are not a guess. One that was made with arguments that are no JSON stays a call,
        because the model must learn from its result how to make it right, and the reasoning before it
        must keep its follower.
        """
        if calls.is_cut(part):
            self.lines.append(notices.cut_call(part.name))
            return
        call = CallBlock(
            call_id=self.ids.take(part.call_id),
            name=part.name,
            input=calls.given(part),
            replay=self._replay(part),
        )
        told = verdicts.verdict(part)
        self._add(call)
        self.results.append(
            ResultTurn(
                call_id=call.call_id,
                name=call.name,
                output=told.text + calls.quoted(part),
                failed=told.failed,
            )
        )

    def _hosted(self, part: PartEntry) -> None:
        """A call that its provider ran goes back to it with its result, or not at all."""
        result = _hosted_result(part)
        if result is None or not self._is_whole or _provider(self.entry.model) != _provider(self.model):
            self.reasoning.clear()
            self.lines.append(notices.hosted_call(part.name, calls.given(part), verdicts.verdict(part).text))
            return
        replay = part.replay or {}
        self._add(
            CallBlock(
                call_id=self.ids.take(part.call_id),
                name=part.name,
                input=calls.given(part),
                hosted=True,
                result=HostedResult(output=verdicts.verdict(part).text, replay=result),
                replay=_object(replay.get("call")) or {},
            )
        )

    def _replay(self, part: PartEntry) -> dict[str, JsonValue]:
        """What the provider gave to be sent back; only the model that gave it may have it."""
        is_own = self._is_whole and self.entry.model == self.model
        return dict(part.replay) if is_own and part.replay else {}

    @property
    def _is_whole(self) -> bool:
        """Whether the provider completed this answer, whatever became of its calls."""
        return self.entry.state == "completed" or any(
            calls.is_planned(part) for part in self.entry.parts if part.kind == "tool" and not part.hosted
        )


def _hosted_result(part: PartEntry) -> dict[str, JsonValue] | None:
    """The result as the provider wants it back, if there is one."""
    if part.state != "completed" or part.replay is None:
        return None
    return _object(part.replay.get("result"))


def _object(value: JsonValue) -> dict[str, JsonValue] | None:
    return dict(value) if isinstance(value, Mapping) else None


def _provider(model: str) -> str:
    return model.partition(":")[0]


def _spaced(turns: Iterable[Turn]) -> Iterable[Turn]:
    """The turns, with a word of ours where the assistant would speak first, or twice."""
    before: Turn | None = None
    for turn in turns:
        if isinstance(turn, AssistantTurn) and (before is None or isinstance(before, AssistantTurn)):
            yield UserTurn(origin="notice", text=notices.OPENING if before is None else notices.GO_ON)
        yield turn
        before = turn
