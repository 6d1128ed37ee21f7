"""A model provider for tests, on raw sockets: says what a test scripts, breaks off where it wants, counts.

In a test's own event loop::

    async with StubProvider() as stub:
        stub.script(answer(*chat_frames("Hello"), end="reset"))
        ... ask stub.url ...
        assert len(stub.journal) == 1

As a process of its own (``python -m tests.support.stub_provider --port 4010``), for products that run in
other processes, with the same through HTTP: ``POST /__stub/scripts`` (a list of scripts, each used once, in
order), ``POST /__stub/default`` (the script for all other requests), ``GET /__stub/journal``,
``POST /__stub/reset``. ``remote_*`` below call these.

A script is JSON: ``{"read": "body" | "head" | "nothing", "do": [[operation, argument?], ...]}`` with the
operations ``send`` (text), ``send64`` (bytes in base64), ``pause`` (seconds), ``hold`` (until the client
goes), ``reset`` (abort the connection) and ``close``. What is not scripted gets a short whole answer.
"""

import argparse
import asyncio
import base64
import contextlib
import json
import socket
import struct
import sys
import urllib.request
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

Script = dict[str, Any]
End = Literal["clean", "cut", "reset", "hold"]

READ_LIMIT = 64 * 1024 * 1024


@dataclass
class Entry:
    """One connection, in the order of arrival."""

    method: str = ""
    path: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""
    is_whole: bool = False
    """Whether a complete request was read."""
    client_left: bool = False
    """Whether the client closed while the answer was held."""

    def json(self) -> Any:
        return json.loads(self.body)


def answer(
    *frames: str | bytes,
    status: int = 200,
    headers: dict[str, str] | None = None,
    end: End = "clean",
    read: Literal["body", "head", "nothing"] = "body",
    pause: float = 0.0,
    is_chunked: bool = True,
) -> Script:
    """A whole answer or the beginning of one; every frame is a chunk of its own.

    ``is_chunked=False`` is the HTTP of old proxies: the end of the connection ends the body.
    """
    fields = {"content-type": "text/event-stream"} | (headers or {})
    fields |= {"transfer-encoding": "chunked"} if is_chunked else {"connection": "close"}
    head = f"HTTP/1.1 {status} Stub\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    do: list[list[Any]] = [["send", f"{head}\r\n"]]
    for frame in frames:
        data = frame.encode() if isinstance(frame, str) else frame
        if is_chunked:
            data = b"%x\r\n%s\r\n" % (len(data), data)
        do += [["pause", pause]] if pause else []
        do.append(["send64", base64.b64encode(data).decode()])
    if end == "clean" and is_chunked:
        do.append(["send", "0\r\n\r\n"])
    do.append([{"clean": "close", "cut": "close"}.get(end, end)])
    return {"read": read, "do": do}


def document(body: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Script:
    """An answer with a body of JSON, or of text as it is."""
    text = body if isinstance(body, str) else json.dumps(body)
    kind = "text/html" if text.startswith("<") else "application/json"
    return answer(text, status=status, headers={"content-type": kind} | (headers or {}))


def broken_connection(
    kind: Literal["reset", "close", "hold"], *, read: Literal["body", "head", "nothing"] = "body"
) -> Script:
    """No answer at all."""
    return {"read": read, "do": [[kind]]}


def chat_frames(*words: str, finish: str | None = "stop", usage: bool = True, done: bool = True) -> list[str]:
    """The frames of a chat completion."""
    frames = [_chat_frame({"role": "assistant", "content": ""})]
    frames += [_chat_frame({"content": word}) for word in words]
    if finish is not None:
        frames.append(_chat_frame({}, finish))
    if usage:
        counts = {"prompt_tokens": 5, "completion_tokens": len(words), "total_tokens": 5 + len(words)}
        frames.append(_sse({"id": "chatcmpl-1", "choices": [], "usage": counts}))
    if done:
        frames.append("data: [DONE]\n\n")
    return frames


def message_frames(*words: str, stop_reason: str | None = "end_turn", stop: bool = True) -> list[str]:
    """The frames of an Anthropic message."""
    usage = {"input_tokens": 5, "output_tokens": 1}
    started = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage}
    frames = [
        _event("message_start", {"message": started}),
        _event("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
        _event("ping", {}),
    ]
    frames += [
        _event("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": word}})
        for word in words
    ]
    frames.append(_event("content_block_stop", {"index": 0}))
    if stop_reason is not None:
        counts = {"output_tokens": len(words)}
        frames.append(_event("message_delta", {"delta": {"stop_reason": stop_reason}, "usage": counts}))
    if stop:
        frames.append(_event("message_stop", {}))
    return frames


def response_events(
    *words: str, first: int = 0, status: str | None = "completed", response_id: str = "resp_1"
) -> list[str]:
    """The events of a response that says these words, from number ``first`` on.

    ``status`` ends it; None leaves it running. Its words are events 2 and following.
    """
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    place = {"output_index": 0, "item_id": "msg_1"}
    told: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": {"id": response_id, "status": "queued"}}),
        ("response.output_item.added", {"output_index": 0, "item": item}),
    ]
    told += [("response.output_text.delta", {**place, "content_index": 0, "delta": word}) for word in words]
    if status is not None:
        whole = response_document(*words, status=status, response_id=response_id)
        told.append((f"response.{status}", {"response": whole}))
    return [
        _event(name, {"sequence_number": number} | fields)
        for number, (name, fields) in enumerate(told)
        if number >= first
    ]


def response_document(
    *words: str, status: str = "completed", response_id: str = "resp_1", **fields: Any
) -> dict[str, Any]:
    """A response as it is retrieved."""
    content = [{"type": "output_text", "text": "".join(words), "annotations": []}]
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
    counts = {"input_tokens": 5, "output_tokens": len(words)}
    told = {"id": response_id, "status": status, "output": [message] if words else [], "usage": counts}
    return told | fields


def _chat_frame(delta: dict[str, Any], finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _sse({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]})


def _sse(payload: dict[str, Any]) -> str:
    return f"data: {json.dumps(payload)}\n\n"


def _event(name: str, fields: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps({'type': name} | fields)}\n\n"


class StubProvider:
    """The server. Enter it to listen on a free port of the loopback, or on the one given."""

    def __init__(self, *, port: int = 0) -> None:
        self.journal: list[Entry] = []
        self._port = port
        self._scripts: list[Script] = []
        self._default: Script | None = None
        self._handlers: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port, limit=READ_LIMIT)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()
        for handler in self._handlers:
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    @property
    def url(self) -> str:
        """Without a path; OpenAI's base URL is this and ``/v1``."""
        return f"http://127.0.0.1:{self._port}"

    def script(self, *scripts: Script) -> None:
        """Answer the next requests like this, one script each."""
        self._scripts += scripts

    async def serve_forever(self) -> None:
        await self._server.serve_forever()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        try:
            await self._handle(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client left, or the test is over
        finally:
            self._handlers.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        script = self._scripts[0] if self._scripts else None
        if script is not None and script["read"] == "nothing":
            self._scripts.pop(0)
            self.journal.append(Entry())
            await self._play(script, self.journal[-1], reader, writer)
            return
        entry = Entry()
        await _read_head(reader, entry)
        if entry.path.startswith("/__stub/"):
            await _read_body(reader, entry)
            await self._control(entry, writer)
            return
        self.journal.append(entry)
        script = self._scripts.pop(0) if self._scripts else self._default or _greeting(entry.path)
        if script["read"] == "body":
            await _read_body(reader, entry)
        await self._play(script, entry, reader, writer)

    async def _play(
        self, script: Script, entry: Entry, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        for operation, *arguments in script["do"]:
            match operation:
                case "send":
                    writer.write(arguments[0].encode())
                    await writer.drain()
                case "send64":
                    writer.write(base64.b64decode(arguments[0]))
                    await writer.drain()
                case "pause":
                    await asyncio.sleep(arguments[0])
                case "hold":
                    with contextlib.suppress(ConnectionError):
                        await reader.read()
                    entry.client_left = True
                case "reset":
                    _reset(writer)
                case "close":
                    writer.close()

    async def _control(self, entry: Entry, writer: asyncio.StreamWriter) -> None:
        answered: Any = None
        match entry.path.removeprefix("/__stub/"):
            case "scripts":
                self._scripts += entry.json()
            case "default":
                self._default = entry.json()
            case "journal":
                answered = [asdict(each) for each in self.journal]
            case "reset":
                self.journal.clear()
                self._scripts.clear()
                self._default = None
        body = json.dumps(answered).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()


async def _read_head(reader: asyncio.StreamReader, entry: Entry) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    entry.method, entry.path, _ = head[0].split(" ")
    for line in head[1:]:
        name, colon, value = line.partition(":")
        if colon:
            entry.headers[name.lower()] = value.strip()


async def _read_body(reader: asyncio.StreamReader, entry: Entry) -> None:
    length = int(entry.headers.get("content-length", "0"))
    entry.body = (await reader.readexactly(length)).decode()
    entry.is_whole = True


def _greeting(path: str) -> Script:
    if path.endswith("/responses"):
        return answer(*response_events("Hello", " there."))
    frames = (
        message_frames("Hello", " there.") if path.endswith("/messages") else chat_frames("Hello", " there.")
    )
    return answer(*frames)


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def remote_scripts(url: str, scripts: Iterable[Script]) -> None:
    _call(f"{url}/__stub/scripts", list(scripts))


def remote_default(url: str, script: Script) -> None:
    _call(f"{url}/__stub/default", script)


def remote_journal(url: str) -> list[Entry]:
    return [Entry(**each) for each in _call(f"{url}/__stub/journal")]


def remote_reset(url: str) -> None:
    _call(f"{url}/__stub/reset", None)


def _call(url: str, payload: Any = None) -> Any:
    request = urllib.request.Request(url, data=json.dumps(payload).encode(), method="POST")
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as response:
        return json.loads(response.read())


async def _main(port: int) -> None:
    async with StubProvider(port=port) as stub:
        print(f"listening on {stub.url}", flush=True)
        await stub.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main(parser.parse_args().port))
    sys.exit(0)
