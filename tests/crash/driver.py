"""What the script does to a house from outside, over HTTP: by conditions, with ids of its own, to its end."""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from tests.crash.house import PATIENCE_SECONDS, House
from tests.crash.provider import Provider
from tests.support.waiting import until

T = TypeVar("T")
Json = dict[str, Any]

_UNRESTED: Final = ("queued", "busy", "retrying", "orphaned")
_MOST_ANSWERS: Final = 8


@dataclass(kw_only=True)
class Acknowledged:
    """A prompt that the API took, and where it said it stands in the log."""

    session: str
    admitted: set[int] = field(default_factory=set)


@dataclass(kw_only=True)
class Driver:
    house: House
    provider: Provider
    faults: list[str] = field(default_factory=list)
    """What broke a promise while the script ran."""
    acknowledged: dict[str, Acknowledged] = field(default_factory=dict)
    withdrawn: set[str] = field(default_factory=set)
    sessions: list[str] = field(default_factory=list)
    reverted: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    # Asking

    def ask(self, method: str, path: str, body: Any = None, *, expect: tuple[int, ...]) -> Any:
        status, answer = self.house.request(method, path, body)
        if status not in expect:
            self.faults.append(f"API: {method} {path} answered {status} {answer}, not {expect}")
        return answer

    def until(self, condition: Callable[[], T], what: str) -> T:
        """Wait for the condition; a process that died at the point is seen to meanwhile."""

        def look() -> T:
            self.house.mend()
            return condition()

        return until(look, within=PATIENCE_SECONDS, what=what)

    # Sessions and prompts

    def session(self, **arguments: Any) -> str:
        session = f"ses_crash-{next(self._numbers):04}"
        self.ask("POST", "/sessions", {"id": session, **arguments}, expect=(200, 201))
        self.sessions.append(session)
        return session

    def change(self, session: str, **changes: Any) -> None:
        self.ask("PATCH", f"/sessions/{session}", changes, expect=(200,))

    def prompt(self, session: str, text: str, *, delivery: str = "steer", wake: bool = True) -> str:
        message = f"msg_crash-{next(self._numbers):04}"
        body = {"id": message, "text": text, "delivery": delivery, "wake": wake}
        self.send(session, body)
        return message

    def send(self, session: str, body: Json) -> Json:
        """Send a prompt, or exactly the same again."""
        answer: Json = self.ask("POST", f"/sessions/{session}/prompts", body, expect=(200, 201))
        known = self.acknowledged.setdefault(body["id"], Acknowledged(session=session))
        known.admitted.add(answer.get("admitted_seq", 0))
        return answer

    def call(self, session: str, tag: str, *calls: tuple[str, Json], **arguments: Any) -> str:
        """Send a prompt to which the model answers with these calls."""
        self.provider.calls[tag] = list(calls)
        return self.prompt(session, f"Please do {tag}", **arguments)

    def switch(self, session: str, message: str, delivery: str) -> None:
        path = f"/sessions/{session}/prompts/{message}"
        self.ask("PATCH", path, {"delivery": delivery}, expect=(200, 409))

    def withdraw(self, session: str, message: str) -> None:
        self.withdrawn.add(message)
        self.ask("DELETE", f"/sessions/{session}/prompts/{message}", expect=(204, 409))

    def interrupt(self, session: str, *, resume: bool = False) -> None:
        """Stop what runs; after a lost answer once more, and then it may stop what came next."""
        self.ask("POST", f"/sessions/{session}/interrupt", {"resume": resume}, expect=(202,))

    def resume(self, session: str) -> None:
        self.ask("POST", f"/sessions/{session}/resume", {}, expect=(202,))

    def stage_revert(self, session: str, message: str) -> None:
        self.reverted.add(message)
        self.ask("POST", f"/sessions/{session}/revert", {"message_id": message}, expect=(200,))

    def clear_revert(self, session: str) -> None:
        self.ask("DELETE", f"/sessions/{session}/revert", expect=(204,))

    def delete(self, session: str) -> None:
        self.ask("DELETE", f"/sessions/{session}", expect=(204, 404))
        self.deleted.add(session)

    # Looking

    def status(self, session: str) -> Json:
        answer: Json = self.ask("GET", f"/sessions/{session}/status", expect=(200,))
        return answer

    def messages(self, session: str) -> list[Json]:
        return self.all(f"/sessions/{session}/messages?limit=200")

    def all(self, path: str) -> list[Json]:
        """Every page of a list."""
        found: list[Json] = []
        cursor = ""
        while True:
            answer = self.ask("GET", f"{path}{cursor}", expect=(200,))
            found += answer["results"]
            if answer["next"] is None:
                return found
            cursor = f"&cursor={answer['next']}"

    def events(self, session: str) -> list[Json]:
        found: list[Json] = []
        while True:
            after = found[-1]["seq"] if found else 0
            answer = self.ask("GET", f"/sessions/{session}/events?after={after}&limit=500", expect=(200,))
            if not answer["results"]:
                return found
            found += answer["results"]

    # Waiting

    def is_at_rest(self, session: str) -> bool:
        return self.status(session)["state"] not in _UNRESTED

    def until_streaming(self, session: str, tag: str) -> None:
        """Until the slow answer comes, or a crash made the script too late for it."""
        self.until(
            lambda: self.provider.is_streaming(tag) or self.is_at_rest(session),
            f"the stream of {tag} in {session}",
        )

    def until_checkpoint(self, session: str) -> None:
        """Until text of the open part is durable, or no part is open."""

        def saved() -> bool:
            parts = [part for message in self.messages(session)[-1:] for part in message["parts"]]
            still_open = [part for part in parts if part["state"] == "open"]
            return any(part["text"] for part in still_open) or self.is_at_rest(session)

        self.until(saved, f"a checkpoint in {session}")

    def until_entered(self, session: str, tool: str, given: Json) -> None:
        self.until(
            lambda: (
                any(
                    line["session"] == session
                    and line["tool"] == tool
                    and given.items() <= line["input"].items()
                    for line in self.house.lines("ledger")
                )
                or self.is_at_rest(session)
            ),
            f"{tool} entered in {session}",
        )

    def until_event(self, session: str, event: str) -> None:
        self.until(
            lambda: any(each["type"] == event for each in self.events(session)) or self.is_at_rest(session),
            f"{event} in {session}",
        )

    def rest(self, session: str) -> Json:
        """Wait until nothing runs and nothing is due."""
        self.until(lambda: self.is_at_rest(session), f"rest in {session}")
        return self.status(session)

    # Deciding as a person would

    def finish(self, session: str, *, attempt: str = "retry", call: str = "approve") -> None:
        """Wait for rest and answer whatever is asked, until nothing is: then everything has its answer."""
        for _ in range(_MOST_ANSWERS):
            status = self.rest(session)
            if not self._answer(session, status, attempt=attempt, call=call):
                break
        else:
            self.faults.append(f"P10: {session} still asks after {_MOST_ANSWERS} answers: {status}")
        self._look_at_rest(session, status)

    def _answer(self, session: str, status: Json, *, attempt: str, call: str) -> bool:
        if status["waiting"]:
            for waiting in status["waiting"]:
                self.decide_call(waiting, call)
        elif status["state"] == "needs_decision" and status["unknown"]["tools"]:
            for unknown in status["unknown"]["tools"]:
                entered = any(line["call"] == unknown for line in self.house.lines("ledger"))
                self.decide_call(unknown, "mark_done" if entered else "mark_not_done")
        elif status["state"] == "needs_decision" and status["unknown"]["attempts"]:
            for unknown in status["unknown"]["attempts"]:
                self.decide_attempt(unknown, attempt)
        elif status["parked"] or status["paused"]:
            self.resume(session)
        else:
            return False
        return True

    def decide_call(self, call: str, action: str) -> None:
        self._decide(f"/tool-calls/{call}/decide", action)

    def decide_attempt(self, attempt: str, action: str) -> None:
        """Nothing can follow an attempt that a newer turn has left behind: then it is abandoned."""
        path = f"/attempts/{attempt}/decide"
        if self._decide(path, action).get("code") == "superseded":
            self._decide(path, "abandon")

    def reconcile(self, attempt: str) -> None:
        """Have the provider asked, if it is not known meanwhile what became of the attempt."""
        self.ask("POST", f"/attempts/{attempt}/reconcile", {}, expect=(202, 409))

    def _decide(self, path: str, action: str) -> Json:
        """Once: a repeat after a lost answer is told the first decision, or that it comes too late."""
        body = {"action": action, "reason": "as the script says"}
        answer: Json = self.ask("POST", path, body, expect=(200, 409))
        return answer

    def look(self) -> Json:
        printed = self.house.run("-m", "tests.crash.look")
        assert printed, "what is left could not be looked at"
        told: Json = json.loads(printed)
        return told

    def _look_at_rest(self, session: str, status: Json) -> None:
        if status["state"] != "idle":
            self.faults.append(f"P8: {session} is {status['state']} in the end")
        if sum(status["pending"].values()):
            self.faults.append(f"P1: {session} is idle although prompts are pending: {status}")
        spoken = [m for m in self.messages(session) if m["type"] in ("user", "synthetic", "assistant")]
        if spoken and spoken[-1]["type"] != "assistant" and not self._was_stopped(session, spoken[-1]["id"]):
            self.faults.append(f"P1: {session} is idle, and {spoken[-1]['id']} was promoted and not answered")

    def _was_stopped(self, session: str, message: str) -> bool:
        """Whether a Stop that was sent again, since its answer was lost, met the turn of this message."""
        if f"POST /sessions/{session}/interrupt" not in self.house.repeated:
            return False
        said = [(each["type"], each["data"]) for each in self.events(session)]
        promoted = said.index(("prompt.promoted", {"message": message}))
        return any(
            kind == "execution.interrupted" and data["reason"] == "user" for kind, data in said[promoted:]
        )
