"""What is wrong with a request is told as a problem document, whatever it is, and never as a 500."""

import json
import logging
from typing import Any

import pytest
from django.test import Client

from schema.limits import MAX_BODY_BYTES
from sessions_app.providers import registry
from tests.api.callers import Caller, refused

pytestmark = pytest.mark.django_db

LONE = "\ud83d"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/me", "GET"),
        ("DELETE", "/sessions", "POST"),
        ("TRACE", "/me", "GET"),
        ("OPTIONS", "/me", "GET"),
    ],
)
def test_a_method_that_is_not_offered_is_refused_with_those_that_are(
    ann: Caller, method: str, path: str, allowed: str
) -> None:
    response = ann.call(method, path)

    refused(response, 405, "method_not_allowed")
    assert allowed in response.headers["Allow"]


def test_an_unknown_address_is_not_found(ann: Caller) -> None:
    refused(ann.get("/nowhere"), 404, "not_found")
    refused(ann.post("/"), 404, "not_found")
    refused(ann.get("/sessions/"), 404, "not_found")


def test_only_json_is_answered(ann: Caller) -> None:
    refused(ann.get("/me", Accept="text/html"), 406, "not_acceptable")
    assert ann.get("/me", Accept="text/html, */*;q=0.1").status_code == 200
    assert ann.get("/me", Accept="application/json").status_code == 200
    assert ann.get("/me", Accept="not a type").status_code == 406


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "x"],
)
def test_only_json_is_read(ann: Caller, content_type: str) -> None:
    refused(ann.send("POST", "/sessions", b'{"title": "x"}', content_type), 415, "unsupported_media_type")


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"nonsense",
        b"\xff\xfe{}",
        b"[]",
        b'"text"',
        b"null",
        b"1",
        b'{"title": NaN}',
        b'{"title": ' + b"[" * 200_000,
        b'{"a":' * 100_000,
        b"9" * 5000,
    ],
    ids=lambda body: body[:12],
)
def test_a_body_that_is_no_json_object_is_refused(ann: Caller, body: bytes) -> None:
    refused(ann.send("POST", "/sessions", body), 400, "malformed_json")


def test_a_body_that_is_too_large_is_refused(ann: Caller) -> None:
    body = b'{"title": "' + b"x" * MAX_BODY_BYTES + b'"}'

    refused(ann.send("POST", "/sessions", body), 413, "body_too_large")


def test_every_bad_field_is_named(ann: Caller) -> None:
    problem = refused(ann.post("/sessions", {"title": 5, "colour": "red", "archived": True}), 400, "invalid")

    assert set(problem["errors"]) == {"title", "colour", "archived"}
    assert all(reasons for reasons in problem["errors"].values())


def test_an_unknown_field_with_a_hostile_name_is_refused(ann: Caller) -> None:
    refused(ann.send("POST", "/sessions", b'{"\\ud83d": 1, "\\u0000": 2}'), 400, "invalid")


@pytest.mark.parametrize(
    "query",
    [
        "limit=0", "limit=201", "limit=x", "limit=-1", "limit=1e2", f"limit={'9' * 50}", "limit=", "colour=red",
        "archived=maybe", "needs_decision=", "cursor=", "cursor=%00", "cursor=%F0%9F%98%80", "cursor=W10",
        f"cursor={'x' * 4000}",
    ],
)  # fmt: skip
def test_a_query_that_cannot_be_used_is_refused(ann: Caller, query: str) -> None:
    response = ann.get(f"/sessions?{query}")

    assert response.status_code == 400
    assert response.json()["code"] == ("invalid_cursor" if query.startswith("cursor") else "invalid")


@pytest.mark.both_databases
@pytest.mark.parametrize("text", ["\0", LONE, f"{LONE}x\0", "\ude00\ud83d"], ids=ascii)
def test_characters_that_cannot_be_stored_make_no_server_error(
    ann: Caller, session_id: str, text: str
) -> None:
    answers = [
        ann.post("/sessions", {"title": f"a{text}b"}),
        ann.patch(f"/sessions/{session_id}", {"title": f"a{text}b"}),
        ann.post(f"/sessions/{session_id}/prompts", {"text": f"a{text}b"}),
    ]
    kept = [answer.json().get("title", answer.json().get("text")) for answer in answers]
    assert [answer.status_code for answer in answers] == [201, 200, 201]
    assert kept == ["axb" if "x" in text else "ab"] * 3
    for path, body in (
        ("/sessions", {"id": f"ses_12345678{text}"}),
        ("/sessions", {"agent": text}),
        ("/sessions", {"model": f"demo:{text}"}),
        ("/sessions", {"recovery_policy": text}),
        (f"/sessions/{session_id}/prompts", {"text": "x", "id": f"msg_12345678{text}"}),
        (f"/sessions/{session_id}/prompts", {"text": "x", "delivery": text}),
    ):
        assert ann.post(path, body).status_code == 400, body


@pytest.mark.both_databases
@pytest.mark.parametrize("text", ["%00", "%ED%A0%BD", "%FF", "%0A", "%2F", "a" * 3000, "%F0%9F%98%80"])
def test_addresses_with_hostile_ids_are_not_found(ann: Caller, session_id: str, text: str) -> None:
    for path in (
        f"/sessions/{text}",
        f"/sessions/ses_12345678{text}/events",
        f"/sessions/{session_id}/prompts/{text}",
        f"/sessions/{session_id}/prompts/msg_12345678{text}",
        f"/attempts/att_12345678{text}",
        f"/attempts?session={text}",
    ):
        method = "DELETE" if "/prompts/" in path else "GET"
        assert ann.call(method, path).status_code == 404, path


@pytest.mark.both_databases
@pytest.mark.parametrize("query", ["q=%00", "q=%ED%A0%BD", "q=%25_%5C", "q=%F0%9F%98%80", f"q={'x' * 3000}"])
def test_hostile_searches_find_nothing(ann: Caller, session_id: str, query: str) -> None:
    response = ann.get(f"/sessions?{query}")

    assert response.status_code == 200
    assert response.json()["results"] == [] or query == "q=%00"


def test_an_error_nobody_expected_is_logged_and_tells_nothing(
    ann: Caller, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> Any:
        raise RuntimeError("the secret of the house")

    monkeypatch.setattr(registry, "available", fail)
    ann.client = Client(raise_request_exception=False)

    with caplog.at_level(logging.ERROR):
        response = ann.get("/models")

    refused(response, 500, "internal_error")
    assert b"secret" not in response.content
    assert "api.failed" in caplog.messages


def test_answers_are_kept_by_no_cache(ann: Caller, nobody: Caller) -> None:
    assert ann.get("/me").headers["Cache-Control"] == "no-store"
    assert nobody.get("/me").headers["Cache-Control"] == "no-store"


def test_what_is_planned_says_so(ann: Caller, session_id: str) -> None:
    refused(ann.post(f"/sessions/{session_id}/compact"), 501, "not_available")


def test_details_that_quote_the_request_are_valid_json(ann: Caller) -> None:
    response = ann.send("POST", "/sessions", b'{"id": "\\ud83d\\u0000"}')

    refused(response, 400, "invalid_id")
    json.loads(response.content.decode("utf-8", "strict"))
