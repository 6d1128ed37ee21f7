"""Drains of this process against a provider that the test scripts."""

import asyncio
import itertools
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from schema.attempts import AttemptError, Usage
from schema.status import Status
from sessions_app import inbox, log, sessions
from sessions_app.execution import coordinator
from sessions_app.log import replay
from sessions_app.models import ProviderAttempt, Session, SessionMessage
from sessions_app.providers import port, registry
from tests.support.waiting import until

T = TypeVar("T")
Script = Callable[["Call"], AsyncGenerator[port.Item]]


@dataclass(eq=False)
class Call:
    """One physical request as the stub sees it."""

    request: port.ModelRequest
    phases: port.Phases
    closed: bool = False


@dataclass(eq=False)
class StubProvider:
    """Answers each request with the next script, the last one for ever."""

    name: str = "stub"
    scripts: list[Script] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def digest(self, request: port.ModelRequest) -> str:
        return "d" * 64

    async def stream(self, request: port.ModelRequest, phases: port.Phases) -> AsyncGenerator[port.Item]:
        call = Call(request, phases)
        script = self.scripts[min(len(self.calls), len(self.scripts) - 1)]
        self.calls.append(call)
        answer = script(call)
        try:
            async for item in answer:
                yield item
        finally:
            await answer.aclose()
            call.closed = True


def answers(*words: str, finish: str = "stop") -> Script:
    """Sends each word as one fragment and ends properly."""

    async def script(call: Call) -> AsyncGenerator[port.Item]:
        await call.phases.dispatching()
        await call.phases.response_started(status=200, request_id="req-1", headers={})
        for word in words:
            yield port.TextDelta("text", word)
        yield port.Finished(finish, Usage(input_tokens=1, output_tokens=len(words)))

    return script


def fails(
    error_class: Any, reason: Any = "network", *, after: tuple[str, ...] = (), gate: "Gate | None" = None
) -> Script:
    """Ends without a terminal marker, as this class; at the gate, if one is given."""

    async def script(call: Call) -> AsyncGenerator[port.Item]:
        if error_class != "not_sent":
            await call.phases.dispatching()
        if gate is not None:
            await gate.wait()
        for word in after:
            yield port.TextDelta("text", word)
        raise port.ProviderError(
            AttemptError(error_class=error_class, reason=reason, message="It did not work.")
        )

    return script


async def looked_up(look: Callable[[], T]) -> T:
    """What the database says, asked from the loop: on a thread whose connection ends with the look."""

    def looking() -> T:
        try:
            return look()
        finally:
            connection.close()

    return await asyncio.to_thread(looking)


class Gate:
    """A point in a script where the test decides when it goes on."""

    def __init__(self) -> None:
        self._reached = 0
        self._open = False

    @property
    def reached(self) -> int:
        return self._reached

    def open(self) -> None:
        self._open = True

    async def wait(self) -> None:
        self._reached += 1
        while not self._open:  # noqa: ASYNC110 - opened from the thread of the test
            await asyncio.sleep(0.005)


def waits(gate: Gate, *, before: tuple[str, ...] = (), after: tuple[str, ...] = ("done",)) -> Script:
    """Sends some words, waits at the gate, sends the rest."""

    async def script(call: Call) -> AsyncGenerator[port.Item]:
        await call.phases.dispatching()
        await call.phases.response_started(status=200, request_id=None, headers={})
        for word in before:
            yield port.TextDelta("text", word)
        await gate.wait()
        for word in after:
            yield port.TextDelta("text", word)
        yield port.Finished("stop")

    return script


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> StubProvider:
    stub = StubProvider(scripts=[answers("Hello")])
    monkeypatch.setattr(registry, "resolve", lambda model: (stub, model.partition(":")[2]))
    return stub


@pytest.fixture
def fast(settings: Any, tmp_path: Any) -> Any:
    """Short times, so that what happens at a heartbeat happens soon."""
    settings.HOLDFAST_RUN_DIR = tmp_path / "run"
    settings.HOLDFAST_HEARTBEAT_SECONDS = 0.1
    settings.HOLDFAST_LEASE_SECONDS = 5
    settings.HOLDFAST_SWEEP_SECONDS = 0.2
    settings.HOLDFAST_CHECKPOINT_SECONDS = 0.05
    settings.HOLDFAST_RECOVERY_POLICY = "ask"
    return settings


class Worker:
    """This process as a worker; every conversation it had must replay from its log."""

    def start(self) -> coordinator.Coordinator:
        return coordinator.start()

    @property
    def running(self) -> coordinator.Coordinator:
        found = coordinator.find()
        assert found is not None
        return found

    def stop(self, grace: float = 0.0) -> bool:
        try:
            return coordinator.stop(grace)
        finally:
            coordinator._here = None

    def on_loop(self, work: Awaitable[Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.running.loop).result(10)  # type: ignore[arg-type]


@pytest.fixture
def worker(fast: Any, transactional_db: None, caplog: pytest.LogCaptureFixture) -> Iterator[Worker]:
    worker = Worker()
    worker.start()
    yield worker
    if coordinator.find() is not None:
        assert worker.stop()
    # Recovery would mend what such a fault leaves, and hide it.
    assert not {"drain.failed", "worker.periodic_failed"} & {record.msg for record in told(caplog)}
    for session_id in Session.objects.values_list("pk", flat=True):
        assert replay.rebuild(session_id, check=True) == []
        seqs = [event.seq for event in log.events_after(session_id, limit=10_000)]
        assert seqs == list(range(1, len(seqs) + 1))


def told(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """What was logged since the test began."""
    return [*caplog.get_records("setup"), *caplog.get_records("call"), *caplog.get_records("teardown")]


class Chat:
    """One session and what a caller may do with it."""

    _names = itertools.count()

    def __init__(self, user: User, *, model: str = "stub:one") -> None:
        self.user = user
        self.id = sessions.create(user_id=user.pk, model=model, now=timezone.now()).session.pk

    @property
    def row(self) -> Session:
        return sessions.get(user_id=self.user.pk, session_id=self.id)

    def admit(self, text: str, **options: Any) -> str:
        admission = sessions.prompt(session_id=self.id, text=text, now=timezone.now(), **options)
        return admission.prompt.pk

    def say(self, text: str, **options: Any) -> str:
        message = self.admit(text, **options)
        coordinator.hand_over(self.id)
        return message

    def stop(self, *, resume: bool = False) -> bool:
        return sessions.interrupt(session_id=self.id, now=timezone.now(), resume=resume)

    def resume(self) -> bool:
        resumed = sessions.resume(session_id=self.id, now=timezone.now())
        coordinator.hand_over(self.id)
        return resumed

    def status(self) -> Status:
        return sessions.get_status(self.id, now=timezone.now())

    def settled(self) -> Status:
        until(lambda: self.row.owner_id is None and self._is_at_rest(), what="the session's rest")
        return self.status()

    def _is_at_rest(self) -> bool:
        if inbox.is_due(self.row, now=timezone.now()):
            return False
        return self.status().state not in ("queued", "busy", "retrying")

    def events(self) -> list[str]:
        return [event.type for event in log.events_after(self.id)]

    def texts(self) -> list[str]:
        """The transcript: what people said, and what was answered."""
        found = []
        for message in sessions.message_shapes(sessions.messages_of(self.row)):
            parts = "".join(part["text"] for part in message["parts"] if part["kind"] == "text")
            found.append(message["text"] if message["text"] is not None else parts)
        return found

    def answers(self) -> list[SessionMessage]:
        return list(SessionMessage.objects.filter(session_id=self.id, type="assistant").order_by("seq"))

    def error(self) -> dict[str, Any]:
        """Why the only answer did not complete."""
        (answer,) = self.answers()
        assert answer.error is not None
        return dict(answer.error)

    def attempts(self) -> list[ProviderAttempt]:
        return list(ProviderAttempt.objects.filter(session_id=self.id).order_by("prepared_at", "pk"))


@pytest.fixture
def chats(worker: Worker, provider: StubProvider, django_user_model: Any) -> Callable[[], Chat]:
    user = django_user_model.objects.create_user("ann")
    return lambda: Chat(user)


@pytest.fixture
def chat(chats: Callable[[], Chat]) -> Chat:
    return chats()
