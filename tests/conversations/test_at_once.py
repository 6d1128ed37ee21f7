"""Many clients that send at the same instant, over HTTP, while workers answer."""

import itertools
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import pytest

from tests.recovery import talks
from tests.recovery.talks import Talk
from tests.support import racing
from tests.support.processes import Response
from tests.support.requirements import requires

CLIENTS: Final = 20
ROUNDS: Final = 50
_numbers: Final = itertools.count()


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=requires("postgresql"))])
def house(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    if request.param == "sqlite":
        yield request.getfixturevalue("talk")
        return
    with talks.prepared(tmp_path_factory.mktemp("house"), database=request.param) as talk:
        talk.instance.start()
        yield talk


@pytest.fixture(scope="module")
def clients() -> Iterator[racing.Racers]:
    with racing.Racers(CLIENTS) as racers:
        yield racers


def send(talk: Talk, session: str, body: dict[str, Any]) -> Response:
    path = f"/api/v1/sessions/{session}/prompts"
    return talk.instance.request("POST", path, body, token=talk.token, timeout=60)


def new_id() -> str:
    return f"msg_at-once-{next(_numbers):04}"


def prompts(talk: Talk, session: str) -> list[Any]:
    listed: list[Any] = talk.call("GET", f"/sessions/{session}/prompts?state=all&limit=200")["results"]
    return listed


def assert_each_was_answered_once(talk: Talk, session: str, sent: list[str]) -> None:
    """In the order of their admission, each by one attempt, and nothing else."""
    talk.until_state(session, "idle")
    assert [prompt["id"] for prompt in prompts(talk, session)] == sent
    messages = talk.messages(session)
    assert [message["id"] for message in messages[::2]] == sent
    assert [message["type"] for message in messages[1::2]] == ["assistant"] * len(sent)
    attempts = talk.attempts(session)
    assert Counter(each["message"] for each in attempts) == Counter(each["id"] for each in messages[1::2])
    assert {attempt["outcome"] for attempt in attempts} == {"completed"}


def test_twenty_clients_that_send_one_prompt_at_once_make_one_row_and_one_attempt(
    house: Talk, clients: racing.Racers
) -> None:
    session = house.session()
    sent = []
    for _ in racing.rounds(ROUNDS, within=4):
        sent.append(new_id())
        body = {"id": sent[-1], "text": "[[words 3]]", "delivery": "queue"}

        answers = clients.round(*[partial(send, house, session, body)] * CLIENTS)

        assert sorted(answer.status for answer in answers) == [200] * (CLIENTS - 1) + [201]
        told = {(answer.json()["id"], answer.json()["admitted_seq"]) for answer in answers}
        assert len(told) == 1

    assert_each_was_answered_once(house, session, sent)


def test_of_twenty_texts_under_one_id_one_is_admitted_and_the_others_are_refused(
    house: Talk, clients: racing.Racers
) -> None:
    session = house.session()
    sent = []
    for _ in racing.rounds(ROUNDS, within=4):
        sent.append(new_id())
        bodies = [{"id": sent[-1], "text": f"Text {n}", "delivery": "queue"} for n in range(CLIENTS)]

        answers = clients.round(*[partial(send, house, session, body) for body in bodies])

        assert Counter(answer.status for answer in answers) == {201: 1, 409: CLIENTS - 1}
        refused = {answer.json()["code"] for answer in answers if answer.status == 409}
        assert refused == {"prompt_conflict"}
        (winner,) = [number for number, answer in enumerate(answers) if answer.status == 201]
        assert prompts(house, session)[-1]["text"] == f"Text {winner}"

    assert_each_was_answered_once(house, session, sent)
