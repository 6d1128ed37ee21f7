"""What one answer may cost a process: its length in memory at most, and an end where none comes."""

import gc
import itertools
import json
import resource
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sessions_app.providers import answer, classify, port, sse, wire
from sessions_app.providers.transport import Broken
from tests.providers import fixtures, response_fixtures
from tests.providers.asking import Script, chat_reader, message_reader, response_reader

TOKENS = 100_000
MEGABYTE = 1024 * 1024
STATM = Path("/proc/self/statm")
MEASURED = pytest.mark.skipif(not STATM.exists(), reason="this system does not tell what a process holds")


class Flow(Script):
    """A source that makes its pieces as they are read, and none of them is kept."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        super().__init__([])
        self._flow = iter(pieces)
        self.read_bytes = 0

    async def read(self) -> bytes | None:
        piece = next(self._flow, None)
        self.read_bytes += len(piece or b"")
        return piece


def chat() -> Iterator[bytes]:
    yield from itertools.repeat(fixtures.delta(content=" word"), TOKENS)
    yield from (fixtures.STOP, fixtures.DONE)


def chat_tags() -> Iterator[bytes]:
    yield fixtures.delta(content="<think>")
    yield from itertools.repeat(fixtures.delta(content=" `wo\n"), TOKENS)
    yield from (fixtures.delta(content="</think>Hi"), fixtures.STOP, fixtures.DONE)


def chat_call() -> Iterator[bytes]:
    yield fixtures.call_delta(fixtures.entry("f", '{"a":"', call_id="x", index=0))
    yield from itertools.repeat(fixtures.call_delta(fixtures.entry(None, " word", index=0)), TOKENS)
    yield fixtures.call_delta(fixtures.entry(None, '"}', index=0))
    yield from (fixtures.delta("tool_calls"), fixtures.DONE)


def message() -> Iterator[bytes]:
    yield from (fixtures.START, fixtures.block(text=""))
    yield from itertools.repeat(fixtures.block_delta("text_delta", text=" word"), TOKENS)
    yield from (fixtures.block_stop(), *fixtures.END)


def response() -> Iterator[bytes]:
    yield from (response_fixtures.CREATED, response_fixtures.OPENED)
    yield from itertools.repeat(response_fixtures.said("output_text", " word"), TOKENS)
    words = " word" * TOKENS
    yield from (
        response_fixtures.done(response_fixtures.message(words)),
        response_fixtures.ended(response_fixtures.message(words)),
    )


def resident() -> int:
    """What this process holds in memory now, in bytes."""
    return int(STATM.read_text().split()[1]) * resource.getpagesize()


async def growth_of(reader: wire.Reader, pieces: Iterable[bytes]) -> tuple[int, str]:
    """How much memory the process took while it read, in bytes, and how the answer ended."""
    end = ""
    gc.collect()
    before = most = resident()
    async for number, item in numbered(reader, pieces):
        end = item.finish if isinstance(item, port.Finished) else end
        most = max(most, resident()) if number % 500 == 0 else most
    return max(most, resident()) - before, end


async def numbered(reader: wire.Reader, pieces: Iterable[bytes]) -> AsyncIterator[tuple[int, port.Item]]:
    number = 0
    async for item in answer.items(Flow(pieces), reader):
        number += 1
        yield number, item


@MEASURED
@pytest.mark.parametrize(
    ("reader", "pieces", "megabytes"),
    [
        pytest.param(chat_reader, chat, 4, id="chat"),
        pytest.param(chat_reader, chat_tags, 4, id="chat, between tags"),
        # Arguments are kept: only the whole tells where a call ends.
        pytest.param(chat_reader, chat_call, 24, id="chat, one call"),
        pytest.param(message_reader, message, 4, id="message"),
        # Its last events tell the whole answer again.
        pytest.param(response_reader, response, 24, id="response"),
    ],
)
async def test_an_answer_of_a_hundred_thousand_tokens_costs_little_memory(
    reader: Callable[[], wire.Reader], pieces: Callable[[], Iterator[bytes]], megabytes: int
) -> None:
    growth, finish = await growth_of(reader(), pieces())

    assert finish in ("stop", "tool_calls")
    assert growth < megabytes * MEGABYTE


READERS = pytest.mark.parametrize("reader", [chat_reader, message_reader, response_reader])


@READERS
@pytest.mark.parametrize(
    "start",
    [b"data: {", b": ", b"", b"event: x\ndata: ", b"{"],
    ids=["data", "comment", "blanks", "name", "JSON"],
)
async def test_a_server_that_never_ends_a_line_is_cut_off(
    reader: Callable[[], wire.Reader], start: bytes
) -> None:
    endless = (b" " if start == b"" else b"x") * 65536
    flow = Flow(itertools.chain([start], itertools.repeat(endless)))

    with pytest.raises(Broken, match="longer than") as broken:
        async for _ in answer.items(flow, reader()):
            pass

    assert flow.read_bytes < sse.MAX_EVENT_BYTES + MEGABYTE
    error = classify.broken(phase=flow.phase, kind=broken.value.kind, detail=broken.value.detail)
    assert (error.error_class, error.reason) == ("partial", "bad_response")


def endless(kind: str) -> Iterator[bytes]:
    match kind:
        case "text":
            return itertools.repeat(fixtures.delta(content="word " * 20_000))
        case "reasoning":
            return itertools.repeat(fixtures.delta(reasoning="word " * 20_000))
        case "arguments":
            call: Any = fixtures.entry("f", "1" * 100_000, call_id="x", index=0)
            return itertools.repeat(fixtures.call_delta(call))
        case _:
            return (
                fixtures.call_delta(fixtures.entry("f", "{}", call_id=f"x{number}"))
                for number in itertools.count()
            )


@pytest.mark.parametrize("kind", ["text", "reasoning", "arguments", "calls"])
async def test_an_answer_that_never_ends_is_cut_off(kind: str) -> None:
    with pytest.raises(Broken, match="does not end"):
        async for _ in answer.items(Flow(endless(kind)), chat_reader()):
            pass


@MEASURED
async def test_blanks_without_end_fill_no_memory() -> None:
    blanks = json.dumps({"choices": [{"delta": {"content": "\n" * 10_000}}]})
    pieces = itertools.chain(
        itertools.repeat(fixtures.frame(blanks), 200), [fixtures.delta("stop", content="x")]
    )

    growth, finish = await growth_of(chat_reader(), pieces)

    assert finish == "stop"
    assert growth < 4 * MEGABYTE
