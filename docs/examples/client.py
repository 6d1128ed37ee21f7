"""A client of Holdfast that loses nothing: neither when a response is lost nor when the server is killed.

    pip install httpx2
    python client.py http://127.0.0.1:8000 TOKEN "What is six times seven?"

It uses nothing of Holdfast but its HTTP API. httpx in place of httpx2 works the same.
"""

import json
import sys
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any

import httpx2

Shape = dict[str, Any]

PAUSE_SECONDS = 0.5
RESTING = ("idle", "needs_decision", "waiting")


class Refused(Exception):
    """The server understood and refused. ``code`` is stable; sending the same again changes nothing."""

    def __init__(self, problem: Shape) -> None:
        self.code = problem["code"]
        super().__init__(problem["detail"])


class Client:
    def __init__(self, url: str, token: str, *, transport: httpx2.BaseTransport | None = None) -> None:
        self._http = httpx2.Client(
            base_url=f"{url}/api/v1",
            headers={"Authorization": f"Token {token}"},
            # The stream sends a comment every 15 seconds: silence for longer is a dead connection.
            timeout=httpx2.Timeout(10, read=30),
            transport=transport,
        )

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    # Asking

    def create_session(self, **about: Any) -> str:
        """With an id of our own, so that sending it again creates nothing twice."""
        about.setdefault("id", f"ses_{uuid.uuid4()}")
        return str(self.call("POST", "/sessions", about)["id"])

    def admit(self, session: str, text: str, *, message_id: str | None = None) -> Shape:
        """The prompt's record. Once it is here, no crash loses the prompt, and it was admitted once."""
        prompt = {"id": message_id or f"msg_{uuid.uuid4()}", "text": text}
        return self.call("POST", f"/sessions/{session}/prompts", prompt)

    def call(self, method: str, path: str, body: Shape | None = None) -> Shape:
        """Send until there is an answer. Every request here may be sent again: ids make it the same one.

        Raises Refused.
        """
        while True:
            try:
                response = self._http.request(method, path, json=body)
            except httpx2.TransportError:
                time.sleep(
                    PAUSE_SECONDS
                )  # Perhaps it arrived, perhaps not: the same again is the way to know.
                continue
            if response.status_code == 429 or response.status_code >= 502:
                time.sleep(float(response.headers.get("Retry-After", PAUSE_SECONDS)))
                continue
            if response.is_error:
                raise Refused(response.json())
            found: Shape = response.json()
            return found

    # Following

    def follow(self, session: str, *, after: int = 0) -> Generator[tuple[str, Shape], None, None]:
        """Every event after a position, once and in order, and live text between them, for ever.

        Yields (kind, data): event, open, delta, status or ready. A lost connection is made anew from the last
        event that was seen; what a part's text was until then comes as ``open``.
        """
        while True:
            try:
                for kind, data in self._stream(session, after):
                    if kind == "event":
                        after = data["seq"]
                    yield kind, data
            except httpx2.TransportError:
                pass
            time.sleep(PAUSE_SECONDS)

    def _stream(self, session: str, after: int) -> Iterator[tuple[str, Shape]]:
        headers = {"Last-Event-ID": str(after)}
        with self._http.stream("GET", f"/sessions/{session}/stream", headers=headers) as response:
            if response.status_code >= 500:
                return
            if response.is_error:
                response.read()
                raise Refused(response.json())
            kind = ""
            for line in response.iter_lines():
                name, _, value = line.partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    yield kind, json.loads(value)

    # Deciding

    def undecided(self, session: str) -> list[Shape]:
        """Requests to the model of which nobody knows what became."""
        path = f"/attempts?session={session}&needs_decision=true"
        found: list[Shape] = self.call("GET", path)["results"]
        return found

    def decide(self, attempt: str, action: str, reason: str) -> None:
        """Abandon or retry. A decision is made once: whoever comes second is told so, and that is fine."""
        try:
            self.call("POST", f"/attempts/{attempt}/decide", {"action": action, "reason": reason})
        except Refused as refused:
            if refused.code not in ("already_decided", "not_unknown"):
                raise


class Answer:
    """What was written since a prompt, put together from a stream."""

    def __init__(self, prompt: Shape) -> None:
        self._prompt = prompt
        self._texts: dict[str, str] = {}
        self._is_promoted = prompt["state"] == "promoted"
        self._state: Shape = {"state": "queued", "head_seq": 0}
        self._seq = prompt["admitted_seq"]

    @property
    def text(self) -> str:
        return "\n\n".join(text for text in self._texts.values() if text)

    @property
    def is_resting(self) -> bool:
        """Whether the prompt was taken up, nothing runs, and no event is on its way."""
        resting = self._state["state"] in RESTING and self._state["head_seq"] <= self._seq
        return self._is_promoted and resting

    @property
    def needs_decision(self) -> bool:
        return self.is_resting and self._state["state"] == "needs_decision"

    def expect_change(self) -> None:
        """What was decided changes the status: the one that is known is old."""
        self._state = {"state": "queued", "head_seq": 0}

    def take(self, kind: str, data: Shape) -> None:
        if kind == "status":
            self._state = data["status"]
        elif kind == "open":
            self._texts[data["part"]] = data["text"]
        elif kind == "delta":
            self._take_delta(data["part"], data["offset"], data["text"])
        elif kind == "event":
            self._take_event(data)

    def _take_delta(self, part: str, offset: int, text: str) -> None:
        """``offset`` counts code points. A gap is left alone: an ``open`` or the end of the text heals it."""
        known = self._texts.get(part, "")
        if offset <= len(known):
            self._texts[part] = known[:offset] + text

    def _take_event(self, event: Shape) -> None:
        self._seq, data = event["seq"], event["data"]
        if event["type"] == "text.ended":
            self._texts[data["part"]] = data["text"]
        if event["type"] == "prompt.promoted" and data["message"] == self._prompt["id"]:
            self._is_promoted = True


def ask(client: Client, session: str, text: str, choose: Callable[[Shape], str]) -> Answer:
    """Admit, follow to the end, and decide what is unknown on the way as ``choose`` says."""
    prompt = client.admit(session, text)
    answer = Answer(prompt)
    with closing(client.follow(session, after=prompt["admitted_seq"])) as stream:
        for kind, data in stream:
            answer.take(kind, data)
            if not answer.is_resting:
                continue
            unknown = client.undecided(session) if answer.needs_decision else []
            if not unknown:
                break
            for attempt in unknown:
                client.decide(attempt["id"], choose(attempt), "decided by the example")
            answer.expect_change()
    return answer


def main() -> None:
    url, token, text = sys.argv[1:]

    def choose(attempt: Shape) -> str:
        print(f"Nobody knows what became of {attempt['id']}; it may be billed.")
        return "retry" if input("Try again (y/n)? ") == "y" else "abandon"

    with Client(url, token) as client:
        print(ask(client, client.create_session(), text, choose).text)


if __name__ == "__main__":
    main()
