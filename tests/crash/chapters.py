"""The scripted conversation, in chapters. Each one goes to its end whatever was killed at whatever moment.

A chapter is what one crash point costs: it begins on a fresh house, and what it leaves is checked.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tests.crash.driver import Driver

Script = Callable[[Driver], None]


@dataclass(frozen=True, kw_only=True)
class Chapter:
    name: str
    script: Script
    environ: dict[str, str] = field(default_factory=dict)
    workers: int = 1


def inbox(d: Driver) -> None:
    """Steer, queue, switch and withdraw while an answer streams; a prompt that waits for a resume."""
    s = d.session(title="First")
    d.change(s, title="Renamed", pinned=True)
    d.prompt(s, "Tell me #slow-a")
    d.until_streaming(s, "#slow-a")
    d.prompt(s, "And #plain-b")
    queued = d.prompt(s, "Later #plain-c", delivery="queue")
    switched = d.prompt(s, "Sooner #plain-d", delivery="queue")
    d.switch(s, switched, "steer")
    withdrawn = d.prompt(s, "Never #plain-e", delivery="queue")
    d.withdraw(s, withdrawn)
    d.send(s, {"id": queued, "text": "Later #plain-c", "delivery": "queue", "wake": True})
    d.until_checkpoint(s)
    d.provider.open("#slow-a")
    d.finish(s)
    d.change(s, model="openai:other", agent="asks")
    d.prompt(s, "Silently #plain-f", wake=False)
    d.resume(s)
    d.finish(s)


def tools(d: Driver) -> None:
    """Calls beside each other, one that tells progress, one whose arguments do not fit."""
    s = d.session()
    d.call(s, "#call-a", ("look", {"what": "door"}), ("charge", {"amount": 1}), ("charge", {"amount": "x"}))
    d.finish(s)
    d.call(s, "#call-b", ("charge", {"amount": 2, "gate": "b"}))
    d.until_entered(s, "charge", {"amount": 2})
    d.until_event(s, "tool.progress")
    d.house.open_gate("b")
    d.finish(s)


def refusals(d: Driver) -> None:
    """A rate limit that is waited for, a refusal for good, an answer that breaks off."""
    s = d.session()
    d.prompt(s, "Soon #rate-a")
    d.finish(s)
    d.prompt(s, "No #bad-b")
    d.finish(s)
    d.prompt(s, "Half #cut-c")
    d.finish(s)


def approvals(d: Driver) -> None:
    """A call that is approved while a prompt waits, one that is denied, one that a Stop ends."""
    s = d.session(agent="asks")
    d.call(s, "#call-a", ("send", {"to": "bob"}), ("look", {"what": "post"}))
    d.rest(s)
    d.prompt(s, "Then #plain-b")
    d.finish(s)
    d.call(s, "#call-c", ("send", {"to": "eve"}))
    d.finish(s, call="deny")
    d.call(s, "#call-d", ("send", {"to": "joe"}))
    d.rest(s)
    d.prompt(s, "After it #plain-e", delivery="queue")
    d.interrupt(s)
    d.finish(s)


def stops(d: Driver) -> None:
    """Stop in a stream, with and without going on; in a tool."""
    s = d.session()
    d.prompt(s, "Tell me #slow-a")
    d.until_streaming(s, "#slow-a")
    d.prompt(s, "Later #plain-b", delivery="queue")
    d.interrupt(s)
    d.provider.open("#slow-a")
    d.finish(s)
    d.prompt(s, "Tell me #slow-c")
    d.until_streaming(s, "#slow-c")
    d.prompt(s, "Rather #plain-d")
    d.interrupt(s, resume=True)
    d.provider.open("#slow-c")
    d.finish(s)
    d.call(s, "#call-e", ("charge", {"amount": 3, "gate": "e"}))
    d.until_entered(s, "charge", {"amount": 3})
    d.interrupt(s)
    d.house.open_gate("e")
    d.finish(s)
    d.prompt(s, "Well #plain-f")
    d.finish(s)


def shutdowns(d: Driver) -> None:
    """Workers are asked to end in a stream and in a tool; others go on."""
    s = d.session()
    d.prompt(s, "Tell me #slow-a")
    d.until_streaming(s, "#slow-a")
    d.house.stop_workers()
    d.house.start_workers()
    d.provider.open("#slow-a")
    d.finish(s)
    d.call(s, "#call-b", ("charge", {"amount": 4, "gate": "b"}))
    d.until_entered(s, "charge", {"amount": 4})
    d.house.stop_workers()
    d.house.open_gate("b")
    d.house.start_workers()
    d.finish(s)


def losses(d: Driver) -> None:
    """kill -9 in a stream: found by new workers, by the web server at its start, by the command; in a tool."""
    s = d.session()
    d.prompt(s, "Tell me #slow-a")
    d.until_streaming(s, "#slow-a")
    d.until_checkpoint(s)
    d.house.kill_workers()
    d.house.start_workers()
    d.provider.open("#slow-a")
    d.finish(s)
    d.prompt(s, "Tell me #slow-b")
    d.until_streaming(s, "#slow-b")
    d.prompt(s, "Then #plain-c")
    d.house.kill()
    d.house.start()
    d.provider.open("#slow-b")
    d.finish(s)
    d.call(s, "#call-d", ("look", {"what": "sea", "gate": "d"}))
    d.until_entered(s, "look", {"what": "sea"})
    d.house.kill_workers()
    d.house.run("manage.py", "recover_sessions", "--no-wait")
    d.house.open_gate("d")
    d.house.start_workers()
    d.finish(s)


def decisions(d: Driver) -> None:
    """The policy is to ask: one unknown attempt is abandoned, one retried, an unknown call is marked, its
    repetition waits for approval."""
    s = d.session(recovery_policy="ask")
    for tag, action in (("#slow-a", "abandon"), ("#slow-b", "retry")):
        d.prompt(s, f"Tell me {tag}")
        d.until_streaming(s, tag)
        d.house.kill_workers()
        d.provider.open(tag)
        d.house.start_workers()
        d.finish(s, attempt=action)
    d.call(s, "#call-c", ("charge", {"amount": 5, "gate": "c"}))
    d.until_entered(s, "charge", {"amount": 5})
    d.house.kill_workers()
    d.house.open_gate("c")
    d.house.start_workers()
    d.finish(s)
    d.call(s, "#call-d", ("charge", {"amount": 5, "gate": "c"}))
    d.finish(s)


def parked(d: Driver) -> None:
    """Without a budget the first loss parks the session; a person lets it run again."""
    s = d.session()
    d.prompt(s, "Tell me #slow-a")
    d.until_streaming(s, "#slow-a")
    d.house.kill_workers()
    d.provider.open("#slow-a")
    d.house.start_workers()
    d.finish(s)
    d.resume(s)
    d.finish(s)


def reverts(d: Driver) -> None:
    """Going back is staged, taken back, staged again, and committed by the next prompt."""
    s = d.session()
    d.prompt(s, "First #plain-a")
    d.finish(s)
    second = d.prompt(s, "Second #plain-b")
    d.finish(s)
    d.stage_revert(s, second)
    d.clear_revert(s)
    d.stage_revert(s, second)
    d.prompt(s, "Second again #plain-c")
    d.finish(s)


def deletions(d: Driver) -> None:
    """One session is deleted while it streams; its ids stay taken, and its neighbour goes on."""
    gone, stays = d.session(), d.session()
    d.prompt(gone, "Tell me #slow-a")
    d.prompt(stays, "Tell me #slow-b")
    d.until_streaming(gone, "#slow-a")
    d.until_streaming(stays, "#slow-b")
    d.delete(gone)
    d.ask("POST", "/sessions", {"id": gone}, expect=(409,))
    d.provider.open("#slow-a")
    d.provider.open("#slow-b")
    d.finish(stays)


def kept(d: Driver) -> None:
    """The provider goes on without us: it had finished when we came back, or still runs."""
    s = d.session(model="openai-responses:stub")
    _lose(d, s, "#kept-a")
    d.provider.open("#kept-a")
    d.house.start_workers()
    d.finish(s)
    _lose(d, s, "#kept-b")
    d.house.start_workers()
    d.until_streaming(s, "#kept-b")
    d.provider.open("#kept-b")
    d.finish(s)


def forgotten(d: Driver) -> None:
    """The provider does not know any more what it was asked: policy decides."""
    s = d.session(model="openai-responses:stub")
    _lose(d, s, "#forgotten-a")
    d.provider.open("#forgotten-a")
    d.house.start_workers()
    d.finish(s)


def asked(d: Driver) -> None:
    """Policy asks nobody, and a person has the provider asked; an answer that is stopped."""
    s = d.session(model="openai-responses:stub", recovery_policy="off")
    _lose(d, s, "#kept-a")
    d.provider.open("#kept-a")
    d.house.start_workers()
    for unknown in d.rest(s)["unknown"]["attempts"]:
        d.reconcile(unknown)
    d.finish(s)
    d.prompt(s, "Tell me #kept-b")
    d.until_streaming(s, "#kept-b")
    d.interrupt(s)
    d.finish(s)


def _lose(d: Driver, session: str, tag: str) -> None:
    """The workers die in the middle of an answer whose name and first words are durable."""
    d.prompt(session, f"Tell me {tag}")
    d.until_streaming(session, tag)
    d.until_checkpoint(session)
    d.house.kill_workers()


CHAPTERS: Final = (
    Chapter(name="inbox", script=inbox),
    Chapter(name="tools", script=tools),
    Chapter(name="refusals", script=refusals),
    Chapter(name="approvals", script=approvals),
    Chapter(name="stops", script=stops),
    Chapter(name="shutdowns", script=shutdowns),
    Chapter(name="losses", script=losses),
    Chapter(name="decisions", script=decisions),
    Chapter(name="parked", script=parked, environ={"HOLDFAST_RECOVERY_BUDGET": "0"}),
    Chapter(name="reverts", script=reverts),
    Chapter(name="deletions", script=deletions),
    Chapter(name="kept", script=kept),
    Chapter(name="forgotten", script=forgotten),
    Chapter(name="asked", script=asked),
)


def named(name: str) -> Chapter:
    return next(chapter for chapter in CHAPTERS if chapter.name == name)
