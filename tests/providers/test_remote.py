"""One attempt is one request over a real socket, and its class is what the wire proves.

The rows follow what was measured with the vendors' SDKs; the journal of the stub counts physical requests.
"""

import asyncio
import gzip
import hashlib
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from schema.attempts import Usage
from sessions_app.providers import anthropic, openai_chat, port, transport
from sessions_app.providers.catalog import Access
from sessions_app.providers.remote import RemoteProvider
from tests.providers.asking import ATTEMPT, Facts, Result, ask, eventually, request
from tests.support.stub_provider import (
    Script,
    StubProvider,
    answer,
    broken_connection,
    chat_frames,
    document,
    message_frames,
)

LIMITS = transport.Limits(connect=5, first_output=5, silence=5, keep_alive=5, after_end=5, attempt=30)
KEY = "sk-the-key-of-this-test"
CUT = chat_frames("Hello", finish=None, usage=False, done=False)


@pytest.fixture
async def stub() -> AsyncIterator[StubProvider]:
    async with StubProvider() as server:
        yield server


def chat(url: str, limits: transport.Limits = LIMITS) -> RemoteProvider:
    return RemoteProvider(
        name="openai",
        wire_format=openai_chat.ChatCompletions(limit_field="max_tokens"),
        access=Access(base_url=f"{url}/v1", key=KEY, is_own=True),
        limits=limits,
    )


def messages(url: str) -> RemoteProvider:
    return RemoteProvider(
        name="anthropic",
        wire_format=anthropic.Messages(),
        access=Access(base_url=url, key=KEY, is_own=True),
        limits=LIMITS,
    )


async def ask_scripted(stub: StubProvider, script: Script, **limits: float) -> tuple[Result, Facts]:
    stub.script(script)
    facts = Facts()
    defaults = {name: getattr(LIMITS, name) for name in LIMITS.__dataclass_fields__}
    came = await ask(chat(stub.url, transport.Limits(**defaults | limits)), facts=facts)
    return came, facts


async def test_a_chat_answer_streams_and_completes(stub: StubProvider) -> None:
    stub.script(
        answer(*chat_frames("Hello", " there."), headers={"x-request-id": "req_1", "set-cookie": "x=y"})
    )
    facts = Facts()

    came = await ask(chat(stub.url), facts=facts)

    assert came.fragments == ["Hello", " there."]
    assert came.items[0] == port.ResponseIdentified("chatcmpl-1")
    assert came.items[-1] == port.Finished("stop", Usage(input_tokens=5, output_tokens=2))
    assert facts.told == ["dispatching", "response 200"]
    assert facts.request_id == "req_1"
    assert facts.headers["content-type"] == "text/event-stream"
    assert "set-cookie" not in facts.headers


async def test_the_request_that_leaves_is_the_one_the_digest_names(stub: StubProvider) -> None:
    provider = chat(stub.url)

    await ask(provider, request("Grüße", system="Be kind."))

    sent = stub.journal[0]
    assert (
        provider.digest(request("Grüße", system="Be kind.")) == hashlib.sha256(sent.body.encode()).hexdigest()
    )
    assert (sent.method, sent.path) == ("POST", "/v1/chat/completions")
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.headers["x-client-request-id"] == ATTEMPT
    assert sent.json()["stream"] is True


async def test_an_anthropic_answer_streams_and_completes(stub: StubProvider) -> None:
    stub.script(answer(*message_frames("Hello", " there."), headers={"request-id": "req_2"}))
    facts = Facts()

    came = await ask(messages(stub.url), facts=facts)

    assert came.text == "Hello there."
    assert came.items[-1] == port.Finished("stop", Usage(input_tokens=5, output_tokens=2))
    assert facts.request_id == "req_2"
    assert stub.journal[0].path == "/v1/messages"
    assert stub.journal[0].headers["x-api-key"] == KEY


@pytest.mark.parametrize(
    "refusal", [RuntimeError("fence lost"), TimeoutError(), OSError("x"), KeyError("y")], ids=repr
)
async def test_a_refused_dispatch_comes_out_unchanged_and_nothing_is_sent(
    stub: StubProvider, refusal: Exception
) -> None:
    with pytest.raises(type(refusal)) as raised:
        await ask(chat(stub.url), facts=Facts(refusal=refusal))

    assert raised.value is refusal
    await ask(chat(stub.url))
    assert len(stub.journal) == 1, "only the second attempt reached the server"


async def test_the_dispatch_is_durable_before_the_first_byte_leaves(stub: StubProvider) -> None:
    committing, committed = asyncio.Event(), asyncio.Event()

    class SlowFacts(Facts):
        async def dispatching(self) -> None:
            committing.set()
            await committed.wait()

    attempt = asyncio.create_task(ask(chat(stub.url), facts=SlowFacts()))
    await committing.wait()
    other = await ask(chat(stub.url))
    arrived_before = len(stub.journal)
    committed.set()
    came = await attempt

    assert other.outcome == came.outcome == "completed"
    assert arrived_before == 1
    assert len(stub.journal) == 2


async def test_a_slow_commit_costs_the_attempt_no_time(stub: StubProvider) -> None:
    class SlowFacts(Facts):
        async def dispatching(self) -> None:
            await asyncio.sleep(0.3)

    tight = transport.Limits(connect=0.2, first_output=5)

    came = await ask(chat(stub.url, tight), facts=SlowFacts())

    assert came.outcome == "completed"


async def test_nobody_listens_and_nothing_was_sent() -> None:
    async with StubProvider() as gone:
        url = gone.url
    facts = Facts()

    came = await ask(chat(url), facts=facts)

    assert (came.outcome, came.reason) == ("not_sent", "network")
    assert facts.told == []


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://no-such-host.invalid", "network"),
        ("ftp://127.0.0.1", "configuration"),
        ("127.0.0.1", "configuration"),
        ("http://[", "network"),
        ("http://127.0.0.1:99999", "configuration"),
    ],
)
async def test_an_address_that_leads_nowhere_sends_nothing(url: str, reason: str) -> None:
    facts = Facts()

    came = await ask(chat(url), facts=facts)

    assert (came.outcome, came.reason) == ("not_sent", reason)
    assert facts.told == []


async def test_a_server_that_speaks_no_tls_gets_nothing(stub: StubProvider) -> None:
    stub.script({"read": "nothing", "do": [["send", "HTTP/1.1 400 Bad Request\r\n\r\n"], ["close"]]})
    facts = Facts()

    came = await ask(chat(stub.url.replace("http:", "https:")), facts=facts)

    assert came.outcome == "not_sent"
    assert facts.told == []


@pytest.fixture
async def stalling() -> AsyncIterator[tuple[str, asyncio.Event]]:
    """A server that takes connections and says nothing, and whether its client left."""
    left = asyncio.Event()

    async def stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        left.set()

    async with await asyncio.start_server(stall, "127.0.0.1", 0) as server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", left


async def test_a_tls_handshake_that_stalls_sends_nothing(stalling: tuple[str, asyncio.Event]) -> None:
    url, left = stalling
    facts = Facts()

    came = await ask(chat(url, transport.Limits(connect=0.2)), facts=facts)

    assert (came.outcome, came.reason) == ("not_sent", "timeout")
    assert facts.told == []
    await asyncio.wait_for(left.wait(), 5)


async def test_cancelling_during_the_tls_handshake_closes_the_connection(
    stalling: tuple[str, asyncio.Event],
) -> None:
    url, left = stalling
    attempt = asyncio.create_task(ask(chat(url)))
    await asyncio.wait([attempt], timeout=0.1)

    attempt.cancel()

    with pytest.raises(asyncio.CancelledError):
        await attempt
    await asyncio.wait_for(left.wait(), 5)


@pytest.mark.parametrize("read", ["nothing", "head", "body"])
@pytest.mark.parametrize("kind", ["reset", "close"])
async def test_no_answer_after_the_dispatch_is_ambiguous_whatever_the_server_read(
    stub: StubProvider, read: Any, kind: Any
) -> None:
    came, facts = await ask_scripted(stub, broken_connection(kind, read=read))

    assert came.outcome == "ambiguous"
    assert facts.told == ["dispatching"]
    assert len(stub.journal) == 1


async def test_silence_after_the_request_is_ambiguous(stub: StubProvider) -> None:
    came, facts = await ask_scripted(stub, broken_connection("hold"), first_output=0.2)

    assert (came.outcome, came.reason) == ("ambiguous", "timeout")
    assert facts.told == ["dispatching"]


async def test_half_a_head_is_ambiguous(stub: StubProvider) -> None:
    came, _ = await ask_scripted(
        stub, {"read": "body", "do": [["send", "HTTP/1.1 200 OK\r\nconte"], ["close"]]}
    )

    assert came.outcome == "ambiguous"


async def test_what_is_no_http_is_ambiguous(stub: StubProvider) -> None:
    came, _ = await ask_scripted(
        stub, {"read": "body", "do": [["send", "220 mail ready\r\n\r\n"], ["close"]]}
    )

    assert (came.outcome, came.reason) == ("ambiguous", "bad_response")


@pytest.mark.parametrize("end", ["clean", "cut", "reset"])
@pytest.mark.parametrize("frames", [[], CUT], ids=["headers only", "some text"])
async def test_an_answer_without_its_end_is_partial(stub: StubProvider, end: Any, frames: list[str]) -> None:
    came, facts = await ask_scripted(stub, answer(*frames, end=end))

    assert (came.outcome, came.reason) == ("partial", "cut")
    assert came.text == ("Hello" if frames else "")
    assert facts.told == ["dispatching", "response 200"]
    assert len(stub.journal) == 1


async def test_half_a_frame_counts_as_nothing(stub: StubProvider) -> None:
    whole, half = CUT, chat_frames("lost")[1][:-1]

    came, _ = await ask_scripted(stub, answer(*whole, half))

    assert (came.outcome, came.text) == ("partial", "Hello")


async def test_the_end_of_an_old_connection_proves_nothing_by_itself(stub: StubProvider) -> None:
    cut, _ = await ask_scripted(stub, answer(*CUT, is_chunked=False))
    whole, _ = await ask_scripted(stub, answer(*chat_frames("Hello"), is_chunked=False))

    assert cut.outcome == "partial"
    assert whole.outcome == "completed"


async def test_a_stall_in_the_answer_is_partial_and_closes_the_connection(stub: StubProvider) -> None:
    came, _ = await ask_scripted(stub, answer(*CUT, end="hold"), silence=0.2)

    assert (came.outcome, came.reason) == ("partial", "timeout")
    await until_left(stub)


async def test_keep_alives_do_not_keep_an_attempt_alive_for_ever(stub: StubProvider) -> None:
    alive = [": ping\n\n"] * 500

    early, _ = await ask_scripted(stub, answer(*alive, pause=0.02), first_output=0.3)
    late, _ = await ask_scripted(stub, answer(*CUT, *alive, pause=0.02), keep_alive=0.3)

    assert (early.outcome, early.reason) == ("partial", "timeout")
    assert (late.outcome, late.reason, late.text) == ("partial", "timeout", "Hello")


async def test_an_attempt_ends_with_its_time_even_while_output_comes(stub: StubProvider) -> None:
    came, _ = await ask_scripted(stub, answer(*chat_frames(*["x"] * 500), pause=0.02), attempt=0.3)

    assert (came.outcome, came.reason) == ("partial", "timeout")
    assert came.text.startswith("x")


@pytest.mark.parametrize("end", ["cut", "reset", "hold"])
async def test_what_breaks_after_the_finish_is_a_complete_answer(stub: StubProvider, end: Any) -> None:
    script = answer(*chat_frames("Hello", done=False), end=end)

    async with asyncio.timeout(3):
        came, _ = await ask_scripted(stub, script, after_end=0.2)

    assert (came.outcome, came.finish, came.text) == ("completed", "stop", "Hello")


async def test_after_the_last_frame_nothing_is_waited_for(stub: StubProvider) -> None:
    async with asyncio.timeout(3):
        came, _ = await ask_scripted(stub, answer(*chat_frames("Hello"), end="hold"), after_end=60)

    assert came.outcome == "completed"
    await until_left(stub)


@pytest.mark.parametrize(
    ("script", "outcome", "reason"),
    [
        (
            document({"error": {"message": "no", "type": "invalid_request_error"}}, status=400),
            "rejected",
            "bad_request",
        ),
        (document({"error": {"message": f"bad {KEY}"}}, status=401), "rejected", "auth"),
        (document({"error": {"type": "insufficient_quota"}}, status=429), "rejected", "quota"),
        (
            document({"type": "error", "error": {"type": "overloaded_error"}}, status=529),
            "rejected",
            "overloaded",
        ),
        (document("<html>", status=502), "ambiguous", "provider_error"),
        (document({"error": {}}, status=500), "ambiguous", "provider_error"),
        (document("", status=504), "ambiguous", "timeout"),
        (document("", status=301, headers={"location": "/"}), "rejected", "configuration"),
        (document("", status=307, headers={"location": "/v1/chat/completions"}), "rejected", "configuration"),
        (document("", status=308, headers={"location": "/v1/chat/completions"}), "rejected", "configuration"),
    ],
)
async def test_a_status_is_one_request_and_its_class(
    stub: StubProvider, script: Script, outcome: str, reason: str
) -> None:
    came, facts = await ask_scripted(stub, script)

    assert (came.outcome, came.reason) == (outcome, reason)
    assert came.error is not None
    assert KEY not in came.error.message
    assert facts.told[0] == "dispatching"
    assert len(facts.told) == 2
    assert len(stub.journal) == 1


async def test_a_rate_limit_brings_its_delay(stub: StubProvider) -> None:
    body = {"error": {"message": "slow down", "type": "rate_limit_error"}}

    came, _ = await ask_scripted(stub, document(body, status=429, headers={"retry-after": "7"}))

    assert came.error is not None
    assert (came.reason, came.error.retry_after) == ("rate_limit", 7.0)


@pytest.mark.parametrize("end", ["cut", "reset", "hold"])
async def test_a_status_counts_although_its_body_breaks_off(stub: StubProvider, end: Any) -> None:
    came, _ = await ask_scripted(stub, answer('{"error": {"mess', status=400, end=end), after_end=0.2)

    assert (came.outcome, came.reason) == ("rejected", "bad_request")


async def test_an_answer_that_came_compressed_all_the_same_is_read(stub: StubProvider) -> None:
    body = gzip.compress("".join(chat_frames("Hello")).encode())

    came, _ = await ask_scripted(stub, answer(body, headers={"content-encoding": "gzip"}))
    bad, _ = await ask_scripted(stub, answer(b"no gzip", headers={"content-encoding": "gzip"}))

    assert (came.outcome, came.text) == ("completed", "Hello")
    assert (bad.outcome, bad.reason) == ("partial", "bad_response")


async def test_closing_the_stream_closes_the_connection(stub: StubProvider) -> None:
    stub.script(answer(*CUT, end="hold"))
    async with aclosing(chat(stub.url).stream(request(), Facts())) as items:
        async for item in items:
            if isinstance(item, port.TextDelta):
                break

    await until_left(stub)


@pytest.mark.parametrize(
    "script", [answer(*CUT, end="hold"), broken_connection("hold")], ids=["stream", "no head"]
)
async def test_cancelling_the_task_closes_the_connection(stub: StubProvider, script: Script) -> None:
    stub.script(script)
    attempt = asyncio.create_task(ask(chat(stub.url)))
    await eventually(lambda: bool(stub.journal) and stub.journal[0].is_whole)

    attempt.cancel()

    with pytest.raises(asyncio.CancelledError):
        await attempt
    await until_left(stub)


async def test_what_the_facts_raise_at_the_headers_comes_out_and_closes(stub: StubProvider) -> None:
    class LostFacts(Facts):
        async def response_started(self, **_: Any) -> None:
            raise RuntimeError("fence lost")

    stub.script(answer(*CUT, end="hold"))

    with pytest.raises(RuntimeError, match="fence lost"):
        await ask(chat(stub.url), facts=LostFacts())

    await until_left(stub)


async def test_every_attempt_has_a_connection_of_its_own(stub: StubProvider) -> None:
    results = await asyncio.gather(*(ask(chat(stub.url)) for _ in range(20)))

    assert [came.outcome for came in results] == ["completed"] * 20
    assert len(stub.journal) == 20


async def test_proxies_of_the_environment_are_not_used(
    stub: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    assert (await ask(chat(stub.url))).outcome == "completed"


async def test_certificates_are_checked() -> None:
    assert transport._tls().verify_mode is ssl.CERT_REQUIRED
    assert transport._tls().check_hostname


async def until_left(stub: StubProvider) -> None:
    """Until the server saw the client close the connection that it holds."""
    await eventually(lambda: stub.journal[-1].client_left)
