"""The manifest of events is frozen: a published (type, version) keeps its fields for ever."""

import ast
from pathlib import Path
from typing import Final

import pytest
from pydantic_core import PydanticUndefined

import schema
from schema import events
from schema.base import Contract
from schema.events import EventData

PUBLISHED: Final = {
    ("session.created", 1): "title agent model recovery_policy?",
    ("session.updated", 1): "title? archived? pinned? recovery_policy?",
    ("session.paused", 1): "reason",
    ("session.unpaused", 1): "reason",
    ("prompt.admitted", 1): "message text digest delivery origin wake",
    ("prompt.promoted", 1): "message",
    ("prompt.withdrawn", 1): "message",
    ("prompt.delivery_changed", 1): "message delivery",
    ("agent.switched", 1): "message agent",
    ("model.switched", 1): "message model",
    ("step.started", 1): "message agent model step",
    ("step.ended", 1): "message finish usage?",
    ("step.failed", 1): "message outcome error notice? usage?",
    ("text.started", 1): "message part index",
    ("text.ended", 1): "message part text replay?",
    ("reasoning.started", 1): "message part index",
    ("reasoning.ended", 1): "message part text complete replay?",
    ("tool.input.started", 1): "message part index call_id name hosted?",
    ("tool.input.ended", 1): "message part raw replay?",
    ("tool.approval_requested", 1): "message part input input_digest effect because earlier?",
    ("tool.approval_decided", 1): "message part action by reason?",
    ("tool.called", 1): "message part input input_digest effect annotations?",
    ("tool.progress", 1): "message part text",
    ("tool.succeeded", 1): "message part output overflow? replay?",
    ("tool.failed", 1): "message part error unknown",
    ("tool.decided", 1): "message part action by policy reason? result?",
    ("retry.scheduled", 1): "message attempt at reason",
    ("attempt.prepared", 1): "attempt message? purpose ordinal provider model request_digest hosted_tools?",
    ("attempt.dispatched", 1): "attempt message?",
    ("attempt.response_started", 1): "attempt message? status provider_request_id? at?",
    ("attempt.identified", 1): "attempt message? provider_response_id",
    ("attempt.first_output", 1): "attempt message? provider_response_id?",
    (
        "attempt.settled",
        1,
    ): "attempt message? outcome finish? error? usage? provider_response_id? may_be_billed",
    ("attempt.unknown", 1): "attempt message? error usage? provider_response_id?",
    ("attempt.asked", 1): "attempt message? answer detail",
    ("attempt.resumed", 1): "attempt message keeps_parts",
    ("attempt.decided", 1): "attempt message? action by policy reason?",
    (
        "recovery.claimed",
        1,
    ): "claim worker? boundary lost_fence lost_owner? death outcome found continuation?",
    ("revert.staged", 1): "message",
    ("revert.cleared", 1): "message",
    ("revert.committed", 1): "message",
    ("execution.interrupted", 1): "message? reason",
}
"""Every event that a log may hold; ``?`` marks a field that may be absent. Rows are added, never changed."""

NAMED_IN_THE_CONTRACT: Final = frozenset(
    [
        "session.created",
        "session.updated",
        "session.paused",
        "session.unpaused",
        "prompt.admitted",
        "prompt.promoted",
        "prompt.withdrawn",
        "prompt.delivery_changed",
        "agent.switched",
        "model.switched",
        "context.updated",
        "step.started",
        "step.ended",
        "step.failed",
        "text.started",
        "text.ended",
        "reasoning.started",
        "reasoning.ended",
        "tool.input.started",
        "tool.input.ended",
        "tool.approval_requested",
        "tool.approval_decided",
        "tool.called",
        "tool.progress",
        "tool.succeeded",
        "tool.failed",
        "tool.decided",
        "attempt.prepared",
        "attempt.dispatched",
        "attempt.response_started",
        "attempt.identified",
        "attempt.first_output",
        "attempt.settled",
        "attempt.unknown",
        "attempt.asked",
        "attempt.resumed",
        "attempt.decided",
        "retry.scheduled",
        "execution.interrupted",
        "recovery.claimed",
        "revert.staged",
        "revert.cleared",
        "revert.committed",
        "compaction.started",
        "compaction.ended",
        "compaction.failed",
        "shell.started",
        "shell.ended",
    ]
)


def test_the_manifest_is_what_was_published() -> None:
    assert {(kind.type, kind.version): fields_of(kind) for kind in events.MANIFEST} == PUBLISHED


def fields_of(kind: type[EventData]) -> str:
    return " ".join(
        name if field.default is PydanticUndefined else f"{name}?"
        for name, field in kind.model_fields.items()
    )


def test_each_type_and_version_is_there_once() -> None:
    assert len({(kind.type, kind.version) for kind in events.MANIFEST}) == len(events.MANIFEST)


def test_every_event_that_is_defined_is_in_the_manifest() -> None:
    assert set(EventData.__subclasses__()) == set(events.MANIFEST)


def test_types_are_those_of_the_contract_and_reserved_ones_are_not_in_use() -> None:
    in_use = {kind.type for kind in events.MANIFEST}

    assert in_use.isdisjoint(events.RESERVED)
    assert in_use | events.RESERVED == NAMED_IN_THE_CONTRACT


@pytest.mark.parametrize("kind", events.MANIFEST, ids=lambda kind: kind.type)
def test_every_event_is_frozen_and_closed(kind: type[EventData]) -> None:
    assert kind.model_config.get("frozen")
    assert kind.model_config.get("extra") == "forbid"
    assert "type" not in kind.model_fields
    assert "version" not in kind.model_fields


def test_no_contract_says_any() -> None:
    package = Path(schema.__file__ or "").parent
    sources = {path.name: path.read_text(encoding="utf-8") for path in package.glob("*.py")}
    names = {
        (file, node.id)
        for file, source in sources.items()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Name) and node.id in ("Any", "object")
    }

    assert len(sources) > 5
    assert names == set()


def test_every_contract_has_the_one_base() -> None:
    assert all(issubclass(kind, Contract) for kind in events.MANIFEST)
