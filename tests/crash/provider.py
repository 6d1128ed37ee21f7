"""A strict OpenAI-compatible server in the driver's process. What it answers is named in the prompts it is sent.

The last ``#kind-name`` in what the user said decides: ``plain`` answers, ``slow`` streams until its gate is
opened, ``rate`` refuses once with a Retry-After, ``bad`` refuses for good, ``cut`` breaks the first answer
off, ``call`` makes the calls that were arranged for it and answers once it has read results.

Over the Responses API an answer is kept and comes to its end once its gate is open, whether anybody reads it or
not: ``kept`` can be asked for by its id, ``forgotten`` is not known when it is.
"""

import contextlib
import json
import re
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from tests.crash.kept import Response, Shelf
from tests.history import validators

TAG: Final = re.compile(r"#([a-z]+)-[a-z0-9]+")
_WORD_SECONDS: Final = 0.05
_LONGEST_STREAM_SECONDS: Final = 60.0

Body = dict[str, Any]


@dataclass(kw_only=True)
class Asked:
    """One request as it arrived."""

    client_id: str
    body: Body
    tag: str
    at: float
    refused: str = ""
    words: int = 0
    """How many pieces of the answer were written so far."""
    is_over: bool = False
    """Whether the answer was written to its end, or the client left."""
    is_answered: bool = False
    kept: Response | None = None

    @property
    def said(self) -> str:
        """The conversation that was sent."""
        return json.dumps(_turns(self.body))


@dataclass
class Provider:
    """Enter it to listen on a free port of the loopback."""

    journal: list[Asked] = field(default_factory=list)
    calls: dict[str, list[tuple[str, Body]]] = field(default_factory=dict)
    """For each tag of kind ``call``: what the model calls."""
    shelf: Shelf = field(default_factory=Shelf)
    _open: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> "Provider":
        provider = self

        class Handler(_Handler):
            stub = provider

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.update(asked.tag for asked in self.journal)
        self._server.shutdown()
        self._server.server_close()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def open(self, tag: str) -> None:
        """Let slow answers to this tag come to their end, now and from now on."""
        self._open.add(tag)

    def is_open(self, tag: str) -> bool:
        return tag in self._open

    def is_streaming(self, tag: str) -> bool:
        return self.shelf.is_read(tag) or any(
            asked.tag == tag and asked.words > 2 and not asked.is_over for asked in self.journal
        )

    def receive(self, client_id: str, body: Body) -> tuple[Asked, int]:
        """Journal a request; returns it with its number among those that came for its tag."""
        tag = _tag(body)
        with self._lock:
            asked = Asked(client_id=client_id, body=body, tag=tag, at=time.time())
            try:
                (validators.responses if "input" in body else validators.chat)(body)
            except (validators.Refused, KeyError, TypeError) as refused:
                asked.refused = f"{type(refused).__name__}: {refused}"
            self.journal.append(asked)
            return asked, sum(each.tag == tag for each in self.journal)


def _turns(body: Body) -> list[Body]:
    turns: list[Body] = body["input"] if "input" in body else body["messages"]
    return turns


def _tag(body: Body) -> str:
    for message in reversed(_turns(body)):
        if message.get("role") == "user" and (found := list(TAG.finditer(str(message["content"])))):
            return found[-1].group()
    return "#plain-untagged"


def _has_results(body: Body, tag: str) -> bool:
    for message in reversed(body["messages"]):
        if message["role"] == "tool":
            return True
        if message["role"] == "user" and tag in str(message["content"]):
            return False
    return False


class _Handler(BaseHTTPRequestHandler):
    stub: Provider

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        """Whoever asks for a response, or goes on reading it, starts nothing."""
        path = urlsplit(self.path)
        response = self.stub.shelf.find(path.path.rpartition("/")[2])
        query = parse_qs(path.query)
        if response is None:
            self._refuse(404, {}, "Response not found.")
        elif query.get("stream") == ["true"]:
            self._begin_stream()
            with contextlib.suppress(OSError):
                self._read_out(response, first=int(query["starting_after"][0]) + 1)
        else:
            self._tell(200, {}, response.document())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", "0"))) or b"null")
        if self.path.endswith("/cancel"):
            self._cancel(self.path.split("/")[-2])
            return
        asked, number = self.stub.receive(self.headers.get("x-client-request-id", ""), body)
        try:
            self._answer(asked, number)
            asked.is_answered = True
        except OSError:
            pass  # the client left
        finally:
            asked.is_over = True

    def _answer(self, asked: Asked, number: int) -> None:
        kind = asked.tag[1:].partition("-")[0]
        if asked.refused or kind == "bad":
            self._refuse(400, {}, asked.refused or "This request is refused by arrangement.")
        elif kind == "rate" and number == 1:
            self._refuse(429, {"retry-after": "1"}, "Rate limit reached.")
        elif "input" in asked.body:
            asked.kept = self.stub.shelf.keep(asked.tag, is_open=lambda: self.stub.is_open(asked.tag))
            self._begin_stream(f"req-{asked.client_id}")
            self._read_out(asked.kept, first=0)
        else:
            self._stream(asked, kind, is_first=number == 1)

    def _refuse(self, status: int, headers: dict[str, str], message: str) -> None:
        self._tell(status, headers, {"error": {"message": message, "type": "invalid_request_error"}})

    def _cancel(self, response_id: str) -> None:
        response = self.stub.shelf.find(response_id)
        if response is None:
            self._refuse(404, {}, "Response not found.")
            return
        response.is_cancelled = response.is_cancelled or not response.is_over()
        self._tell(200, {}, response.document())

    def _read_out(self, response: Response, *, first: int) -> None:
        """Send the events from that number on, to its end, or until the client left."""
        response.readers += 1
        try:
            deadline = time.monotonic() + _LONGEST_STREAM_SECONDS
            is_over = False
            while not is_over and time.monotonic() < deadline:
                is_over = response.is_over()
                events = response.events(first=first)
                first += len(events)
                self.wfile.write("".join(events or [": still running\n\n"]).encode())
                self.wfile.flush()
                if not is_over:
                    time.sleep(_WORD_SECONDS)
        finally:
            response.readers -= 1

    def _tell(self, status: int, headers: dict[str, str], document: Body) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, asked: Asked, kind: str, *, is_first: bool) -> None:
        self._begin_stream(f"req-{asked.client_id}")
        self._send(asked, {"role": "assistant", "content": ""})
        calls = self.stub.calls.get(asked.tag, [])
        if kind == "call" and not _has_results(asked.body, asked.tag):
            self._call(asked, calls)
            return
        self._send(asked, {"reasoning_content": "Let me think. "})
        self._words(asked, kind, is_first=is_first)
        if kind == "cut" and is_first:
            return
        self._end(asked, "stop")

    def _begin_stream(self, request_id: str = "") -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        if request_id:
            self.send_header("x-request-id", request_id)
        self.end_headers()

    def _words(self, asked: Asked, kind: str, *, is_first: bool) -> None:
        for word in ("This ", "answers ", asked.tag.replace("#", "")):
            self._send(asked, {"content": word})
        deadline = time.monotonic() + _LONGEST_STREAM_SECONDS
        while kind == "slow" and not self.stub.is_open(asked.tag) and time.monotonic() < deadline:
            time.sleep(_WORD_SECONDS)
            self._send(asked, {"content": " on"})

    def _call(self, asked: Asked, calls: list[tuple[str, Body]]) -> None:
        self._send(asked, {"content": "I call. "})
        for index, (name, given) in enumerate(calls):
            called = {"name": name, "arguments": json.dumps(given)}
            call_id = f"call_{len(self.stub.journal)}_{index}"
            self._send(
                asked,
                {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": called}]},
            )
        self._end(asked, "tool_calls")

    def _end(self, asked: Asked, finish: str) -> None:
        self._send(asked, {}, finish)
        self._write(
            {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}}
        )
        self.wfile.write(b"data: [DONE]\n\n")
        self.wfile.flush()

    def _send(self, asked: Asked, delta: Body, finish: str | None = None) -> None:
        self._write({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
        asked.words += 1

    def _write(self, payload: Body) -> None:
        chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", **payload}
        self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.flush()
