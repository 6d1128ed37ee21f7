"""The product as a user runs it: killed, stopped, started again, and nobody types a command."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.recovery import talks, wrapping
from tests.recovery.talks import Talk
from tests.support.requirements import requires
from tests.support.waiting import until

DATABASES = ["sqlite", pytest.param("postgresql", marks=requires("postgresql"))]


@pytest.fixture
def talk(tmp_path: Path, request: Any) -> Iterator[Talk]:
    with talks.prepared(tmp_path, database=getattr(request, "param", "sqlite")) as talk:
        yield talk


def numbers(count: int) -> str:
    return " ".join(map(str, range(1, count + 1)))


@pytest.mark.parametrize("talk", DATABASES, indirect=True)
def test_killed_in_the_middle_of_a_stream_and_of_tools_it_goes_on_by_itself_when_started_again(
    talk: Talk,
) -> None:
    talk.instance.start()
    streaming, reading, setting, paying = (talk.session(model="openai:stub") for _ in range(4))
    talk.script(talks.sending("One", " two"))
    talk.say(streaming, "Count")
    talk.until_written(streaming, 2)
    for session, name in ((reading, "look"), (setting, "set_up"), (paying, "pay")):
        talk.script(talks.calling(name))
        talk.say(session, "Do it")
        talk.until_entered(session)
    queued = talk.say(streaming, "And then?", delivery="queue")

    talk.kill_everything()
    (talk.instance.directory / "open").touch()
    talk.instance.start()

    for session in (streaming, reading, setting):
        talk.until_state(session, "idle")
        assert len(talk.claims(session)) == 1
    assert talk.until_state(paying, "needs_decision")["unknown"]["tools"]
    # One request per attempt, and none for an attempt that was made before.
    attempts = [
        attempt for session in (streaming, reading, setting, paying) for attempt in talk.attempts(session)
    ]
    asked = [entry.headers.get("x-client-request-id") for entry in talk.journal()]
    assert sorted(filter(None, asked)) == sorted(each["client_request_id"] for each in attempts)
    assert len(asked) == len(attempts) == 8
    assert [each["state"] for each in attempts].count("unknown") == 1
    # Each effect once.
    assert sorted(line["tool"] for line in talk.ledger()) == ["look", "pay", "set_up"]
    assert talk.text(streaming).startswith("One two Hello")
    assert [claim["outcome"] for claim in talk.claims(setting)] == ["continued"]
    assert [claim["outcome"] for claim in talk.claims(reading)] == ["resumed"]
    said = {message["id"]: message["text"] for message in talk.messages(streaming)}
    assert said[queued] == "And then?"


def test_rolling_restarts_in_a_row_lose_nothing_make_nothing_unknown_and_spend_no_budget(talk: Talk) -> None:
    talk.instance.environ["HOLDFAST_GRACE_SECONDS"] = "8"
    talk.instance.start()
    counting = talk.session()
    talk.say(counting, "[[delay 50]] [[words 500]]")
    others = [talk.session() for _ in range(3)]
    for session in others:
        talk.say(session, "[[delay 30]] [[words 60]]")

    for restart in range(3):
        talk.until_written(counting, 10 * (restart + 1))
        late = talk.session()
        others.append(late)
        talk.say(late, "[[words 5]]")
        assert talk.instance.stop(within=60) == 0
        assert not talk.instance.processes()
        talk.instance.start()

    for session in (counting, *others):
        talk.until_state(session, "idle")
    assert talk.text(counting) == numbers(500)
    assert [talk.text(session) for session in others[:3]] == [numbers(60)] * 3
    assert [talk.text(session) for session in others[3:]] == [numbers(5)] * 3
    for session in (counting, *others):
        assert talk.claims(session) == []
        assert {attempt["outcome"] for attempt in talk.attempts(session)} <= {"completed", "interrupted"}
        assert talk.status(session)["unknown"] == {"attempts": [], "tools": []}
    assert talk.count(counting) == 0
    assert len(talk.attempts(counting)) > 1, "no restart met the answer"


def killer(depth: int) -> str:
    """Calls the tool that kills in every step."""
    text = "done"
    for number in range(depth, 0, -1):
        text = f'[[tool kill {{"number": {number}}}]] [[then {text}]]'
    return text


@pytest.mark.parametrize("workers", [1, 2])
def test_a_session_that_kills_its_worker_each_time_is_parked_and_the_others_finish(
    talk: Talk, workers: int
) -> None:
    talk.instance.start(workers=workers)
    others = [talk.session() for _ in range(3)]
    for session in others:
        talk.say(session, "[[delay 50]] [[words 60]]")
        talk.until_written(session, 3)
    killing = talk.session()
    talk.say(killing, killer(8))

    status = talk.until_state(killing, "needs_decision")

    assert status["parked"]
    entered = [line for line in talk.ledger() if line["session"] == killing]
    assert len(entered) == 4, "the first time, and once for each recovery of the budget"
    assert [claim["outcome"] for claim in talk.claims(killing)][:1] == ["parked"]
    for session in others:
        talk.until_state(session, "idle")
        assert talk.text(session) == numbers(60)
    assert talk.status(killing)["state"] == "needs_decision"


def test_a_session_that_kills_whoever_recovers_it_is_parked_and_the_others_finish(talk: Talk) -> None:
    talk.instance.start()
    killing, other = talk.session(), talk.session()
    (talk.instance.directory / wrapping.KILL).write_text(killing)
    talk.say(other, "[[delay 50]] [[words 100]]")
    talk.say(killing, "[[delay 50]] [[words 500]]")
    talk.until_written(other, 3)
    talk.until_written(killing, 1)

    talk.instance.kill("worker")

    until(lambda: talk.status(killing)["parked"], within=90, what="it is parked")
    talk.until_state(other, "idle")
    assert talk.text(other) == numbers(100)
    assert talk.claims(killing) == []
    killed = (talk.instance.directory / "killed-recoverers").read_text().split()
    assert len(killed) == 4
    # A person acts: it is settled and goes on.
    (talk.instance.directory / wrapping.KILL).unlink()
    talk.say(killing, "[[words 3]]")
    talk.until_state(killing, "idle")
    assert talk.text(killing).endswith("1 2 3")
