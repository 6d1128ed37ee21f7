"""The class of every way in which an attempt can end without completing.

The tables follow what was measured on real SDKs and servers: what a situation looks like, what it proves.
"""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.attempts import AttemptError
from sessions_app.providers import classify
from sessions_app.providers.classify import Break, Phase

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


def answered(
    status: int, body: Any = None, *, is_own_server: bool = True, headers: dict[str, str] | None = None
) -> AttemptError:
    data = body.encode() if isinstance(body, str) else b"" if body is None else json.dumps(body).encode()
    return classify.answered(
        status=status, headers=headers or {}, body=data, is_own_server=is_own_server, now=NOW
    )


def openai(**fields: Any) -> dict[str, Any]:
    return {"error": {"message": "words", "type": None, "param": None, "code": None} | fields}


def anthropic(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": "words"} | fields, "request_id": "req_1"}


@pytest.mark.parametrize(
    ("situation", "phase", "kind", "expected"),
    [
        ("refused or no such host", Phase.CONNECTING, "unreachable", ("not_sent", "network")),
        ("connect or TLS timeout", Phase.CONNECTING, "timeout", ("not_sent", "timeout")),
        ("reset during TLS", Phase.CONNECTING, "disconnected", ("not_sent", "network")),
        ("bad URL", Phase.PREPARED, "local", ("not_sent", "configuration")),
        ("headers that h11 refuses", Phase.DISPATCHED, "local", ("not_sent", "configuration")),
        ("closed before the body was read", Phase.DISPATCHED, "disconnected", ("ambiguous", "network")),
        ("reset after the whole request", Phase.WRITTEN, "disconnected", ("ambiguous", "network")),
        ("no answer in time", Phase.WRITTEN, "timeout", ("ambiguous", "timeout")),
        ("empty reply", Phase.WRITTEN, "disconnected", ("ambiguous", "network")),
        ("no HTTP", Phase.WRITTEN, "protocol", ("ambiguous", "bad_response")),
        ("write timed out", Phase.DISPATCHED, "timeout", ("ambiguous", "timeout")),
        ("clean end after the headers", Phase.HEADERS, "cut", ("partial", "cut")),
        ("drop in the stream", Phase.FIRST_OUTPUT, "disconnected", ("partial", "cut")),
        ("stall in the stream", Phase.FIRST_OUTPUT, "timeout", ("partial", "timeout")),
        ("bad frame", Phase.FIRST_EVENT, "undecodable", ("partial", "bad_response")),
        ("clean end without a finish", Phase.FIRST_OUTPUT, "cut", ("partial", "cut")),
    ],
)
def test_a_break_proves_what_its_phase_proves(
    situation: str, phase: Phase, kind: Break, expected: tuple[str, str]
) -> None:
    error = classify.broken(phase=phase, kind=kind, detail=situation)

    assert (error.error_class, error.reason) == expected
    assert error.message == situation


QUOTA = openai(type="insufficient_quota")
SPEND_LIMIT = anthropic("rate_limit_error", details={"error_code": "enforced_spend_limit_reached"})
OVERFLOW = openai(type="invalid_request_error", code="context_length_exceeded")
LLAMA_OVERFLOW = {"error": {"code": 400, "type": "exceed_context_size_error", "message": "too big"}}
LOADING = {"error": {"code": 503, "type": "unavailable_error", "message": "Loading model"}}


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, openai(type="invalid_request_error"), ("rejected", "bad_request")),
        (401, openai(code="invalid_api_key"), ("rejected", "auth")),
        (402, openai(), ("rejected", "quota")),
        (403, anthropic("permission_error"), ("rejected", "auth")),
        (404, anthropic("not_found_error"), ("rejected", "configuration")),
        (405, None, ("rejected", "configuration")),
        (409, openai(code="conversation_locked"), ("rejected", "bad_request")),
        (413, anthropic("request_too_large"), ("rejected", "overflow")),
        (413, "<html>413</html>", ("rejected", "overflow")),
        (415, None, ("rejected", "bad_request")),
        (422, {"detail": [{"msg": "field required"}]}, ("rejected", "bad_request")),
        (451, None, ("rejected", "bad_request")),
        (301, "<html>", ("rejected", "configuration")),
        (307, None, ("rejected", "configuration")),
        (429, openai(code="rate_limit_exceeded"), ("rejected", "rate_limit")),
        (429, anthropic("rate_limit_error"), ("rejected", "rate_limit")),
        (429, "<html>", ("rejected", "rate_limit")),
        (429, QUOTA, ("rejected", "quota")),
        (429, SPEND_LIMIT, ("rejected", "quota")),
        (
            400,
            anthropic("invalid_request_error", message="Your credit balance is too low"),
            ("rejected", "quota"),
        ),
        (400, OVERFLOW, ("rejected", "overflow")),
        (400, LLAMA_OVERFLOW, ("rejected", "overflow")),
        (
            400,
            anthropic("invalid_request_error", message="prompt is too long: 9 tokens > 8"),
            ("rejected", "overflow"),
        ),
        (400, openai(code="content_filter"), ("rejected", "content_filter")),
        (529, anthropic("overloaded_error"), ("rejected", "overloaded")),
        (529, None, ("rejected", "overloaded")),
        (529, "<html>", ("ambiguous", "overloaded")),
        (503, openai(message="The engine is currently overloaded"), ("rejected", "overloaded")),
        (503, openai(message="Slow down"), ("rejected", "overloaded")),
        (503, LOADING, ("rejected", "overloaded")),
        (503, openai(message="upstream connect error"), ("ambiguous", "overloaded")),
        (503, "<html>", ("ambiguous", "overloaded")),
        (500, anthropic("api_error"), ("ambiguous", "provider_error")),
        (
            500,
            {"success": False, "error": {"code": "INTERNAL", "status": 500}},
            ("ambiguous", "provider_error"),
        ),
        (502, "<html>", ("ambiguous", "provider_error")),
        (504, None, ("ambiguous", "timeout")),
        (520, None, ("ambiguous", "provider_error")),
        (522, None, ("ambiguous", "timeout")),
        (524, "<html>", ("ambiguous", "timeout")),
        (408, openai(), ("ambiguous", "timeout")),
        (424, openai(), ("ambiguous", "bad_request")),
        (499, None, ("ambiguous", "timeout")),
    ],
)
def test_a_status_proves_rejection_only_where_it_precedes_inference(
    status: int, body: Any, expected: tuple[str, str]
) -> None:
    error = answered(status, body)

    assert (error.error_class, error.reason) == expected
    assert error.status == status


def test_what_a_gateway_calls_overload_may_have_begun_behind_it() -> None:
    body = openai(type="overloaded_error", message="overloaded")

    assert answered(503, body, is_own_server=True).error_class == "rejected"
    assert answered(503, body, is_own_server=False).error_class == "ambiguous"
    assert answered(503, LOADING, is_own_server=False).error_class == "rejected"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": format_datetime(NOW + timedelta(seconds=90), usegmt=True)}, 90.0),
        ({"retry-after": format_datetime(NOW - timedelta(seconds=90), usegmt=True)}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "999999999"}, 3600.0),
        ({"retry-after": "1e400"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_stated_delay_is_read_and_bounded(headers: dict[str, str], seconds: float | None) -> None:
    assert answered(429, openai(), headers=headers).retry_after == seconds


def test_a_permanent_rejection_states_no_delay() -> None:
    assert answered(429, QUOTA, headers={"retry-after": "5"}).retry_after is None
    assert answered(400, openai(), headers={"retry-after": "5"}).retry_after is None


@pytest.mark.parametrize(
    ("payload", "before_output", "after_output"),
    [
        (anthropic("overloaded_error"), ("rejected", "overloaded"), ("failed", "overloaded")),
        (anthropic("rate_limit_error"), ("rejected", "rate_limit"), ("failed", "rate_limit")),
        (openai(code=429), ("rejected", "rate_limit"), ("failed", "rate_limit")),
        (openai(type="server_error"), ("failed", "provider_error"), ("failed", "provider_error")),
        (openai(code=502), ("failed", "provider_error"), ("failed", "provider_error")),
        (openai(code=503), ("failed", "overloaded"), ("failed", "overloaded")),
        (
            openai(code="tool_use_failed", status_code=400),
            ("failed", "bad_request"),
            ("failed", "bad_request"),
        ),
        (
            openai(code=400, message="prompt is too long: 9 tokens > 8"),
            ("failed", "overflow"),
            ("failed", "overflow"),
        ),
        ({"error": {"message": "quota exceeded"}}, ("failed", "quota"), ("failed", "quota")),
        (openai(type="insufficient_quota", code=429), ("failed", "quota"), ("failed", "quota")),
        ({"error": "just words"}, ("failed", "provider_error"), ("failed", "provider_error")),
        ("plain text", ("failed", "provider_error"), ("failed", "provider_error")),
        ([{"error": {"code": 429, "message": "x"}}], ("rejected", "rate_limit"), ("failed", "rate_limit")),
        (None, ("failed", "provider_error"), ("failed", "provider_error")),
    ],
)
def test_an_error_in_the_stream_is_a_rejection_only_for_load_and_before_output(
    payload: Any, before_output: tuple[str, str], after_output: tuple[str, str]
) -> None:
    before = classify.reported(payload=payload, phase=Phase.FIRST_EVENT)
    after = classify.reported(payload=payload, phase=Phase.FIRST_OUTPUT)

    with_tools = classify.reported(payload=payload, phase=Phase.FIRST_EVENT, has_hosted_tools=True)

    assert with_tools.error_class == "failed"
    assert (before.error_class, before.reason) == before_output
    assert (after.error_class, after.reason) == after_output


def test_the_words_of_the_provider_are_kept_and_those_of_a_page_are_not() -> None:
    assert (
        answered(400, openai(message="no such model")).message == "The provider answered 400: no such model"
    )
    assert answered(502, "<html>secret</html>").message == "The provider answered 502 without saying why."
    assert answered(500, "upstream\n gone").message == "The provider answered 500: upstream gone"


KEY = "a-key.with+odd/characters"


@pytest.mark.parametrize(
    "words",
    [
        f"Incorrect API key provided: {KEY}",
        f"header Authorization: Bearer {KEY}!",
        "key sk-proj-abcdef123456 is wrong",
        "Incorrect API key provided: sk-abcd****wxyz.",
        "got x-api-key: some-value-here",
        "Bearer abc.def.ghi",
    ],
)
def test_no_secret_survives_in_a_message(words: str) -> None:
    error = answered(401, openai(message=words, code=words))

    shown = classify.shown(error, secrets=(KEY,))

    for secret in (KEY, "sk-proj-abcdef123456", "sk-abcd", "some-value-here", "abc.def.ghi"):
        assert secret not in shown.message
        assert secret not in (shown.code or "")


def test_a_secret_at_the_cut_of_a_long_message_does_not_survive_in_part() -> None:
    error = answered(401, openai(message="x" * (classify.MAX_MESSAGE - 40) + KEY * 3))

    shown = classify.shown(error, secrets=(KEY,))

    assert "a-key" not in shown.message
    assert len(shown.message) <= classify.MAX_MESSAGE


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "type", "code", "message", "status", "details", "detail"]), inner
        )
    ),
    max_leaves=8,
)


@given(st.integers(100, 999), st.binary(max_size=80) | JSON.map(lambda value: json.dumps(value).encode()))
def test_no_answer_breaks_the_classifier(status: int, body: bytes) -> None:
    error = classify.answered(status=status, headers={}, body=body, is_own_server=True, now=NOW)

    assert error.error_class in ("rejected", "ambiguous")


@given(JSON, st.sampled_from(Phase))
def test_no_report_breaks_the_classifier(payload: Any, phase: Phase) -> None:
    assert classify.reported(payload=payload, phase=phase).error_class in ("rejected", "failed")
