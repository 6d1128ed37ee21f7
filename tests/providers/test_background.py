"""Asking for a response by its id: only reads, follows, gives up in time, and can stop it."""

from dataclasses import replace
from typing import Any

import pytest

from sessions_app.providers import background, port
from sessions_app.providers.background import BackgroundProvider
from sessions_app.providers.catalog import Access
from sessions_app.providers.transport import DEFAULT_LIMITS
from tests.providers.asking import Result, ask, request
from tests.support.stub_provider import (
    StubProvider,
    answer,
    broken_connection,
    document,
    response_document,
    response_events,
)

WORDS = ("Hel", "lo", " there")
RUNNING = document(response_document(status="in_progress"))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "DELAYS", (0.0, 0.0))


def provider(stub: StubProvider, **limits: float) -> BackgroundProvider:
    return BackgroundProvider(
        name="openai-responses",
        access=Access(base_url=f"{stub.url}/v1", key="a-key", is_own=True),
        limits=replace(DEFAULT_LIMITS, **limits),
    )


async def asked(stub: StubProvider, *, follow: bool = True, **limits: float) -> Result:
    came = Result()
    try:
        async for item in provider(stub, **limits).ask("resp/1", follow=follow):
            came.items.append(item)
    except port.ProviderError as error:
        came.error = error.error
    return came


async def test_a_request_in_the_background_streams_like_any_other() -> None:
    async with StubProvider() as stub:
        came = await ask(provider(stub), request())

        assert (came.text, came.finish) == ("Hello there.", "stop")
        assert stub.journal[0].json()["background"] is True


async def test_asking_reads_with_the_key_and_sends_no_body() -> None:
    async with StubProvider() as stub:
        stub.script(document(response_document(*WORDS)))

        came = await asked(stub)

        assert (came.text, came.finish) == ("Hello there", "stop")
        (entry,) = stub.journal
        assert (entry.method, entry.path, entry.body) == ("GET", "/v1/responses/resp%2F1", "")
        assert entry.headers["authorization"] == "Bearer a-key"
        assert "x-client-request-id" not in entry.headers


async def test_a_stream_that_is_refused_is_looked_at_until_it_has_ended() -> None:
    async with StubProvider() as stub:
        refused = document({"error": {"message": "Not a stream."}}, status=400)
        stub.script(RUNNING, refused, RUNNING, refused, document(response_document(*WORDS)))

        assert (await asked(stub)).text == "Hello there"


@pytest.mark.parametrize("cut", range(1, 5))
async def test_wherever_following_breaks_every_word_comes_once(cut: int) -> None:
    async with StubProvider() as stub:
        first = response_events(*WORDS, first=1, status=None)[:cut]
        stub.script(
            RUNNING,
            answer(*first, end="reset"),
            RUNNING,
            answer(*response_events(*WORDS, first=1 + cut)),
        )

        came = await asked(stub)

        assert (came.text, came.finish) == ("Hello there", "stop")
        assert stub.journal[3].path.endswith(f"&starting_after={cut}")


async def test_what_was_followed_and_ended_unseen_is_completed_from_the_whole() -> None:
    async with StubProvider() as stub:
        stub.script(
            RUNNING,
            answer(*response_events(*WORDS, first=1, status=None)[:2], end="cut"),
            document(response_document(*WORDS)),
        )

        came = await asked(stub)

        assert came.fragments == ["Hel", "lo there"]


@pytest.mark.parametrize("status", [404, 410])
async def test_a_response_that_is_not_there_is_forgotten(status: int) -> None:
    async with StubProvider() as stub:
        stub.script(document({"error": {"message": "Not found."}}, status=status))

        with pytest.raises(port.Forgotten):
            await asked(stub)


@pytest.mark.parametrize(
    "script",
    [document({}, status=503), document({}, status=429), document("<html>"), broken_connection("reset")],
)
async def test_a_provider_that_is_away_is_tried_a_few_times(script: Any) -> None:
    async with StubProvider() as stub:
        stub.script(*[script] * 3)

        with pytest.raises(port.CannotTell):
            await asked(stub)

        assert len(stub.journal) == 3


async def test_a_provider_that_comes_back_tells() -> None:
    async with StubProvider() as stub:
        stub.script(document({}, status=503), document(response_document(*WORDS)))

        assert (await asked(stub)).text == "Hello there"


async def test_a_refusal_is_not_tried_again() -> None:
    async with StubProvider() as stub:
        stub.script(document({"error": {"message": "Wrong key."}}, status=401))

        with pytest.raises(port.CannotTell):
            await asked(stub)

        assert len(stub.journal) == 1


async def test_a_look_does_not_wait_for_what_still_runs() -> None:
    async with StubProvider() as stub:
        stub.script(RUNNING)

        with pytest.raises(port.CannotTell):
            await asked(stub, follow=False)

        assert len(stub.journal) == 1


async def test_a_response_that_runs_for_ever_is_given_up() -> None:
    async with StubProvider() as stub:
        stub.script(RUNNING, answer(), RUNNING, answer())

        with pytest.raises(port.CannotTell):
            await asked(stub, attempt=0.0)


@pytest.mark.parametrize("status", ["failed", "cancelled"])
async def test_a_response_that_failed_is_told_with_its_reason(status: str) -> None:
    async with StubProvider() as stub:
        error = {"code": "server_error", "message": "Oops, a-key."}
        stub.script(document(response_document(status=status, error=error)))

        came = await asked(stub)

        assert came.error is not None
        assert (came.outcome, came.error.message) == ("failed", "Oops, [secret].")


async def test_cancelling_is_one_request_whatever_comes_of_it() -> None:
    async with StubProvider() as stub:
        stub.script(document(response_document(status="cancelled")), broken_connection("reset"))

        await provider(stub).cancel("resp_1")
        await provider(stub).cancel("resp_1")

        assert [(entry.method, entry.path) for entry in stub.journal] == [
            ("POST", "/v1/responses/resp_1/cancel")
        ] * 2


async def test_a_server_without_background_mode_is_told_how_to_do_without() -> None:
    async with StubProvider() as stub:
        stub.script(document({"error": {"message": "Unknown parameter: 'background'."}}, status=400))

        came = await ask(provider(stub), request())

        assert came.error is not None
        assert (came.outcome, came.reason) == ("rejected", "configuration")
        assert "OPENAI_RESPONSES_BACKGROUND=0" in came.error.message
