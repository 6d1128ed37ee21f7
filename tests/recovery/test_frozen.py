"""Owners that stood still: one alone loses what it held and does no harm, all together lose nothing."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.recovery import talks, wrapping
from tests.recovery.talks import Talk
from tests.support import stub_provider
from tests.support.processes import Process
from tests.support.requirements import requires
from tests.support.waiting import until

ON_BOTH: Final = pytest.mark.parametrize(
    "talk", ["sqlite", pytest.param("postgresql", marks=requires("postgresql"))], indirect=True
)
LEASE: Final = float(talks.HASTY["HOLDFAST_LEASE_SECONDS"])
WORDS: Final = 60


@pytest.fixture
def talk(tmp_path: Path, request: Any) -> Iterator[Talk]:
    with talks.prepared(tmp_path, database=getattr(request, "param", "sqlite")) as talk:
        yield talk


def owner(talk: Talk, session: str) -> Process:
    """The process that owns the session."""
    code = f"from sessions_app.models import Session;print(Session.objects.get(pk='{session}').owner.pid)"
    pid = int(talk.instance.manage("shell", "-v", "0", "-c", code).stdout)
    return next(process for process in talk.instance.processes("worker") if process.pid == pid)


def freeze(talk: Talk, process: Process, session: str) -> None:
    """Stop the process, but not while it holds a lock of the database that others would wait for."""
    while True:
        talk.instance.kill_process(process, signal.SIGSTOP)
        try:
            talk.instance.request(
                "PATCH", f"/api/v1/sessions/{session}", {"title": "Frozen"}, token=talk.token, timeout=2
            )
            return
        except TimeoutError:
            talk.instance.kill_process(process, signal.SIGCONT)


def thaw(talk: Talk, process: Process) -> None:
    """Let it go on, and wait until it knows that it lost what it held."""
    before = talk.instance.output.count("drain.lost")
    talk.instance.kill_process(process, signal.SIGCONT)
    until(
        lambda: talk.instance.output.count("drain.lost") > before,
        within=30,
        what=f"the drain learns that it is lost\n{talk.instance.output[-2000:]}",
    )


@ON_BOTH
def test_an_owner_frozen_in_the_middle_of_a_stream_writes_nothing_and_closes_its_connection(
    talk: Talk,
) -> None:
    talk.instance.start(workers=2)
    session = talk.session(model="openai:stub")
    talk.script(talks.sending("One", " two"))
    talk.say(session, "Count")
    talk.until_written(session, 2)
    frozen = owner(talk, session)

    freeze(talk, frozen, session)
    talk.until_event(session, "recovery.claimed")
    talk.until_state(session, "idle")
    assert [claim["death"] for claim in talk.claims(session)] == ["assumed"]
    before = talk.status(session)["head_seq"]
    thaw(talk, frozen)

    until(lambda: talk.journal()[0].client_left, within=15, what="the first connection is closed")
    assert talk.status(session)["head_seq"] == before
    assert len(talk.journal()) == len(talk.attempts(session)) == 2
    assert talk.text(session).startswith("One two Hello")
    # It is a worker like any other again.
    for _ in range(3):
        talk.say(session, "And?")
        talk.until_state(session, "idle")


@ON_BOTH
def test_an_owner_frozen_between_a_call_and_its_entry_enters_nothing(talk: Talk) -> None:
    talk.instance.start(workers=2)
    session = talk.session(model="openai:stub")
    (talk.instance.directory / wrapping.FREEZE).write_text(session)
    (talk.instance.directory / "open").touch()
    talk.script(talks.calling("pay"))
    talk.say(session, "Pay")
    mark = talk.instance.directory / "frozen"
    pid = int(until(lambda: mark.exists() and mark.read_text(), within=60, what="a worker froze itself"))
    frozen = next(process for process in talk.instance.processes("worker") if process.pid == pid)
    assert "tool.called" in talk.events(session)

    status = talk.until_state(session, "needs_decision")
    before = status["head_seq"]
    thaw(talk, frozen)

    assert talk.ledger() == []
    assert talk.status(session)["head_seq"] == before
    assert len(talk.journal()) == 1
    (call,) = status["unknown"]["tools"]
    # Nothing stands in the way of deciding it, and of the model's going on.
    talk.call("POST", f"/tool-calls/{call}/decide", {"action": "mark_not_done"})
    talk.until_state(session, "idle")
    assert talk.ledger() == []


def slow_answer() -> stub_provider.Script:
    words = [f" {number}" for number in range(1, WORDS + 1)]
    return stub_provider.answer(*stub_provider.chat_frames(*words), pause=0.2)


def assert_nobody_lost_anything(talk: Talk, session: str) -> None:
    talk.until_state(session, "idle")
    assert talk.text(session).split() == [str(number) for number in range(1, WORDS + 1)]
    assert talk.claims(session) == []
    assert len(talk.journal()) == 1
    assert "worker.declared_dead" not in talk.instance.output
    assert "worker.dead" not in talk.instance.output


@requires("postgresql")
@pytest.mark.parametrize("talk", ["postgresql"], indirect=True)
def test_a_database_that_is_away_longer_than_a_lease_kills_no_living_owner(talk: Talk) -> None:
    talk.instance.start(workers=2)
    session = talk.session(model="openai:stub")
    talk.script(slow_answer())
    talk.say(session, "Count")
    talk.until_written(session, 3)
    url = talk.instance.environ["DATABASE_URL"]

    talks.block_connections(url, allowed=False)
    time.sleep(LEASE + 2)
    assert "worker.heartbeat_failed" in talk.instance.output
    talks.block_connections(url, allowed=True)

    assert_nobody_lost_anything(talk, session)


def test_a_machine_that_was_suspended_longer_than_a_lease_kills_no_living_owner(talk: Talk) -> None:
    talk.instance.start(workers=2)
    session = talk.session(model="openai:stub")
    talk.script(slow_answer())
    talk.say(session, "Count")
    talk.until_written(session, 3)
    everybody = talk.instance.processes()

    for process in everybody:
        talk.instance.kill_process(process, signal.SIGSTOP)
    time.sleep(LEASE + 2)
    for process in everybody:
        talk.instance.kill_process(process, signal.SIGCONT)

    assert_nobody_lost_anything(talk, session)
