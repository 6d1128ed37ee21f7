"""How often one may ask: per user, per token, told in headers, the same for a socket."""

import pytest
from django.core.cache import cache

from schema.limits import Rate
from sessions_app import figures
from sessions_app.access import rates
from tests.api import callers
from tests.api.callers import UNKNOWN_SESSION, Caller
from tests.support import world


@pytest.fixture(autouse=True)
def _in_one_window(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.clear()
    monkeypatch.setattr("sessions_app.access.rates.time.time", lambda: 1_000_000_020.0)


def test_every_answer_tells_where_one_stands(ann: Caller, settings) -> None:
    settings.HOLDFAST_USER_RATE = Rate(100, 60)
    settings.HOLDFAST_TOKEN_RATE = Rate(10, 60)

    answers = [
        ann.get("/me"),
        ann.get(f"/sessions/{UNKNOWN_SESSION}"),
        ann.post("/sessions", {"no": "field"}),
    ]

    assert [answer.status_code for answer in answers] == [200, 404, 400]
    assert [answer["RateLimit-Remaining"] for answer in answers] == ["9", "8", "7"]
    assert {(answer["RateLimit-Limit"], answer["RateLimit-Reset"]) for answer in answers} == {("10", "60")}


def test_a_token_that_asks_too_often_is_told_when_to_come_again_and_others_are_served(
    ann, bob, settings
) -> None:
    settings.HOLDFAST_TOKEN_RATE = Rate(2, 60)
    other_token = callers.another_token(ann)

    statuses = [ann.get("/me").status_code for _ in range(3)]
    refused = ann.get("/me")

    assert statuses == [200, 200, 429]
    assert refused["Content-Type"] == callers.PROBLEM
    assert refused.json()["code"] == "throttled"
    assert refused["Retry-After"] == refused["RateLimit-Reset"] == "60"
    assert other_token.get("/me").status_code == 200
    assert bob.get("/me").status_code == 200


def test_a_user_is_counted_over_all_tokens(ann: Caller, settings) -> None:
    settings.HOLDFAST_USER_RATE = Rate(2, 60)
    other_token = callers.another_token(ann)

    assert [caller.get("/me").status_code for caller in (ann, other_token, ann)] == [200, 200, 429]


def test_a_refused_prompt_is_not_admitted_and_is_counted(ann: Caller, session_id: str, settings) -> None:
    settings.HOLDFAST_TOKEN_RATE = Rate(1, 3600)
    ann.get("/me")

    answer = ann.post(f"/sessions/{session_id}/prompts", {"text": "Hello"})

    assert answer.status_code == 429
    assert "prompt.admitted" not in world.event_types(session_id)
    figures.store()
    assert figures.read()["throttled"]["token"] >= 1


def test_a_new_window_begins_anew(ann: Caller, settings, monkeypatch) -> None:
    settings.HOLDFAST_TOKEN_RATE = Rate(1, 60)
    assert [ann.get("/me").status_code for _ in range(2)] == [200, 429]

    monkeypatch.setattr("sessions_app.access.rates.time.time", lambda: 1_000_000_080.0)

    assert ann.get("/me").status_code == 200


def test_no_limit_costs_nothing_and_tells_nothing(ann: Caller, settings, monkeypatch) -> None:
    settings.HOLDFAST_USER_RATE = settings.HOLDFAST_TOKEN_RATE = None
    monkeypatch.setattr(rates, "_count", lambda *_, **__: pytest.fail("counted"))

    assert "RateLimit-Limit" not in ann.get("/me")


def test_a_cache_that_is_away_refuses_nobody(ann: Caller, settings) -> None:
    settings.HOLDFAST_TOKEN_RATE = Rate(1, 60)
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": "redis://127.0.0.1:1/0",
        }
    }

    assert [ann.get("/me").status_code for _ in range(3)] == [200, 200, 200]


def test_who_is_not_known_is_asked_who_they_are_first(nobody: Caller, settings) -> None:
    settings.HOLDFAST_USER_RATE = Rate(1, 60)

    assert [nobody.get("/me").status_code for _ in range(3)] == [401, 401, 401]


def test_the_defaults_let_the_load_through_that_one_server_can_take(settings) -> None:
    for rate in (settings.HOLDFAST_USER_RATE, settings.HOLDFAST_TOKEN_RATE):
        assert rate.requests / rate.seconds >= 1000
