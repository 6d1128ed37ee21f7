"""The process's coordinator: one asyncio loop that runs many drains and keeps the worker alive.

One drain per session; wakes that arrive meanwhile are coalesced; different sessions run concurrently.
It knows of a drain before the drain owns its session, so that every session this worker owns without a
drain is a stray.
"""

import asyncio
import contextlib
import logging
import os
import random
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol, TypeVar

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.utils import timezone

from sessions_app import figures, hooks, ownership
from sessions_app.execution import calls, checkpoints, inquiry, retries, stages
from sessions_app.execution.control import StopReason
from sessions_app.execution.database import DatabaseThreads
from sessions_app.execution.recorder import Recorder
from sessions_app.execution.step import Step
from sessions_app.live import nudge, publish
from sessions_app.log import FenceLost, Held, SessionGone
from sessions_app.tools import registry

logger = logging.getLogger(__name__)

POSTGRESQL_THREADS: Final = 3
HAND_OVER_SECONDS: Final = 20.0
"""How long a wake waits for a place before it goes back to the queue; well below django-q2's retry."""


class NoRoom(Exception):
    """The worker drains as many sessions as it may; the wake stays in the queue and comes again."""

    def __init__(self, *, limit: int) -> None:
        super().__init__(
            f"This worker already drains {limit} sessions. Start more workers, or raise HOLDFAST_DRAINS_PER_WORKER."
        )


R = TypeVar("R", covariant=True)


class Work(Protocol[R]):
    """A piece of a drain that can be cancelled: a step, or the settling of its calls."""

    async def run(self) -> R: ...

    def cancel(self) -> None: ...

    def grown_parts(self) -> list[tuple[str, str]]: ...

    async def write_progress(self) -> None: ...


@dataclass(eq=False)
class Drain:
    """One process-local run of a session's work."""

    coordinator: "Coordinator"
    session_id: str
    held: Held | None = None
    step: "Work[Any] | None" = None
    stop_reason: StopReason | None = None
    woken_again: bool = False
    _woken_at: datetime | None = None
    _nudged: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_shutting_down(self) -> bool:
        return self.coordinator.is_stopping

    async def certain(self) -> None:
        await self.coordinator.certain()

    async def verify(self) -> None:
        """Immediately before the first byte: no doubt, and if there was some, still the owner.

        A worker that was declared dead has another id by now, and its doubt is over; what it held as the
        one before may be another's.
        """
        assert self.held is not None
        is_same_life = self.held.worker_id == self.coordinator.registration.worker_id
        if is_same_life and not self.coordinator.is_in_doubt():
            return
        await self.coordinator.certain()
        await self.coordinator.database.run(ownership.verify, held=self.held)

    def cancel(self, reason: StopReason) -> None:
        """Cancel the running stream; a Stop that finds none is seen at the next transaction."""
        self.stop_reason = reason
        self.nudge()
        if self.step is not None:
            self.step.cancel()

    def grown_parts(self) -> list[tuple[str, str]]:
        return [] if self.step is None else self.step.grown_parts()

    async def run(self) -> None:
        """Acquire, step by step until nothing is left, release."""
        begun = await self.coordinator.database.run(
            stages.begin,
            session_id=self.session_id,
            worker_id=self.coordinator.registration.worker_id,
            now=timezone.now(),
        )
        if isinstance(begun, ownership.Refusal):
            await self._refused(begun)
            return
        self.held = begun.held
        publish.status(self.session_id)
        self._woken_at = begun.woken_at
        following: bool | retries.Retry = True
        if begun.unfinished is not None:
            following = await self._settle(begun.held, begun.unfinished)
        while following is not False:
            retry = following if isinstance(following, retries.Retry) else None
            following = await self._step(begun.held, retry)

    async def _refused(self, refusal: ownership.Refusal) -> None:
        logger.debug("drain.refused", extra={"session": self.session_id, "reason": refusal.value})
        if refusal in (ownership.Refusal.UNSETTLED, ownership.Refusal.OWNED):
            await self.coordinator.housekeeping.run(
                _report_orphan,
                session_id=self.session_id,
                worker_id=self.coordinator.registration.worker_id,
            )

    async def _settle(self, held: Held, message_id: str) -> bool:
        """Finish the newest step, whose calls waited for a person."""
        toolset = await registry.toolset()
        frame = await self.coordinator.database.run(stages.frame_of, message_id=message_id, toolset=toolset)
        return await self._watched(
            calls.Settling(Recorder(held, frame), control=self, database=self.coordinator.database)
        )

    async def _step(self, held: Held, retry: retries.Retry | None) -> bool | retries.Retry:
        if retry is not None and not await self._wait_until(retry.at):
            return await self.coordinator.database.run(
                stages.give_up_retry, held=held, retry=retry, now=timezone.now()
            )
        prepared = await self.coordinator.database.run(
            stages.prepare,
            held=held,
            toolset=await registry.toolset(),
            now=timezone.now(),
            retry=retry,
        )
        if isinstance(prepared, bool | retries.Retry):
            return prepared
        if isinstance(prepared, stages.Inquire):
            return await self._inquire(held, prepared.attempt_id)
        woken_at, self._woken_at = self._woken_at, None
        return await self._watched(
            Step(prepared, held=held, control=self, database=self.coordinator.database, woken_at=woken_at)
        )

    async def _inquire(self, held: Held, attempt_id: str) -> bool | retries.Retry:
        """Ask what became of an unknown attempt before anything goes on."""
        asked = await self.coordinator.database.run(
            inquiry.begin,
            held=held,
            attempt_id=attempt_id,
            toolset=await registry.toolset(),
            now=timezone.now(),
        )
        if isinstance(asked, bool):
            return asked
        return await self._watched(
            inquiry.Inquiry(asked, held=held, control=self, database=self.coordinator.database)
        )

    async def _watched(self, step: Work[R]) -> R:
        """Run a piece of work so that a Stop or a shutdown can cancel it at any moment."""
        self.stop_reason = None
        self.step = step
        running = asyncio.ensure_future(step.run())
        try:
            await asyncio.sleep(0)
            if self.coordinator.is_interrupting:
                self.cancel("shutdown")
            return await running
        finally:
            self.step = None

    async def _wait_until(self, at: datetime) -> bool:
        """Wait for a retry's time, or until somebody wants the drain, for whom it is not early.

        False at a shutdown.
        """
        self._nudged.clear()
        if self.is_shutting_down:
            return False
        delay = max(0.0, (at - timezone.now()).total_seconds())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await self._nudged.wait()
        return not self.is_shutting_down

    def nudge(self) -> None:
        """End the wait for a retry, if the drain is in one."""
        self._nudged.set()


def _report_orphan(*, session_id: str, worker_id: str) -> None:
    """Tell recovery when a wake met a session whose owner is dead or that nobody settled."""
    if ownership.is_orphan(session_id, now=timezone.now()):
        hooks.orphan_found(session_id, worker_id)


@dataclass(eq=False)
class Coordinator:
    """Made by ``start`` in the process that drains; everything below runs on its loop."""

    database: DatabaseThreads
    heartbeats: DatabaseThreads
    housekeeping: DatabaseThreads
    registration: ownership.Registration
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    drains: dict[str, Drain] = field(default_factory=dict)
    is_stopping: bool = False
    is_interrupting: bool = False
    earlier_lives: list[ownership.Registration] = field(default_factory=list)
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)
    _renewed: asyncio.Event = field(default_factory=asyncio.Event)
    _ended: asyncio.Event = field(default_factory=asyncio.Event)
    _place_free: asyncio.Event = field(default_factory=asyncio.Event)
    _strays: dict[tuple[str, int], bool] = field(default_factory=dict)
    """Owned under a fence and not drained at the last heartbeat; true when that was told already.

    Without the fence, sessions that come and go fast could be missed twice between two looks.
    """

    # Wakes

    async def hand_over(self, session_id: str) -> bool:
        """Start or join the session's drain. False when this process takes nothing new any more.

        Waits for a place for a while; raises NoRoom when none came free.
        """
        deadline = self.loop.time() + HAND_OVER_SECONDS
        while not self.is_stopping:
            drain = self.drains.get(session_id)
            if drain is not None:
                drain.woken_again = True
                return True
            if len(self.drains) < settings.HOLDFAST_DRAINS_PER_WORKER:
                self._start(session_id)
                return True
            self._place_free.clear()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._place_free.wait()
            except TimeoutError:
                raise NoRoom(limit=settings.HOLDFAST_DRAINS_PER_WORKER) from None
        return False

    def _start(self, session_id: str) -> None:
        drain = Drain(self, session_id)
        self.drains[session_id] = drain
        self._spawn(self._drain(drain))

    async def _drain(self, drain: Drain) -> None:
        """Run a drain; a wake that came meanwhile runs it again, without growing the stack."""
        try:
            while True:
                drain.woken_again = False
                await self._run_once(drain)
                drain.held = None
                if not drain.woken_again:
                    return
                if self.is_stopping:
                    # It was taken from the queue and nobody looked: another process is to.
                    await self._give_back(drain.session_id)
                    return
        finally:
            del self.drains[drain.session_id]
            self._place_free.set()
            publish.status(drain.session_id)

    async def _give_back(self, session_id: str) -> None:
        """Put a wake back that joined a drain whose last look was before it."""
        try:
            await self.database.run(stages.rewake, session_id=session_id, now=timezone.now())
        except SessionGone:
            pass
        except (DatabaseError, InterfaceError):
            logger.exception("drain.wake_not_given_back", extra={"session": session_id})

    async def _run_once(self, drain: Drain) -> None:
        extra = {"session": drain.session_id, "worker": self.registration.worker_id}
        try:
            await drain.run()
        except (FenceLost, SessionGone) as over:
            logger.info("drain.lost", extra={**extra, "reason": type(over).__name__})
        except (DatabaseError, InterfaceError) as failed:
            # Not its text: a database repeats the row that it refused, and with it what people wrote.
            sqlstate = getattr(failed.__cause__, "sqlstate", None)
            logger.error(  # noqa: TRY400 - the trace repeats the text
                "drain.database_failed",
                extra={**extra, "error": type(failed).__name__, "sqlstate": sqlstate},
            )
        except Exception:
            logger.exception("drain.failed", extra=extra)

    # Stop requests

    async def look_for_stop(self, session_id: str) -> None:
        """Serve a nudge: the durable request decides, so a repeated or mistaken nudge does no harm."""
        drain = self.drains.get(session_id)
        if drain is not None and drain.held is not None:
            self._cancel(await self.database.run(stages.to_cancel, held=[drain.held]))

    def _cancel(self, over: set[Held]) -> None:
        """Cancel what was looked at; a drain that has begun anew meanwhile was not."""
        for held in over:
            drain = self.drains.get(held.session_id)
            if drain is not None and drain.held == held:
                drain.cancel("user")

    async def on_nudge(self, kind: str, session_id: str) -> None:
        if kind == "interrupt":
            await self.look_for_stop(session_id)
        elif kind == "checkpoint" and session_id in self.drains:
            await self._write_checkpoints([self.drains[session_id]])

    # The worker's life

    def is_in_doubt(self) -> bool:
        return self.registration.is_in_doubt()

    async def certain(self) -> None:
        """Return at once without doubt, else when the heartbeat got through again."""
        while self.is_in_doubt():
            self._renewed.clear()
            await self._renewed.wait()

    async def _beat(self) -> None:
        """Renew the heartbeat, then look at what belongs to this worker."""
        try:
            renewed = await self.heartbeats.run(self.registration.renew, now=timezone.now())
            if renewed:
                self.watch.renewed()
            else:
                await self._register_anew()
        except (DatabaseError, InterfaceError):
            logger.warning("worker.heartbeat_failed", extra={"worker": self.registration.worker_id})
            self.watch.renewal_failed()
            return
        self._renewed.set()
        await self._look_after_own()

    async def _register_anew(self) -> None:
        """This worker was declared dead: what it drains goes on until a fence says otherwise."""
        logger.warning("worker.declared_dead", extra={"worker": self.registration.worker_id})
        self.earlier_lives.append(self.registration)
        self.registration = await self.heartbeats.run(_register)
        self.watch.renewal_failed()
        self._spawn(self._listen(self.registration.worker_id))

    async def _look_after_own(self) -> None:
        held = [drain.held for drain in self.drains.values() if drain.held is not None]
        self._cancel(await self.heartbeats.run(stages.to_cancel, held=held))
        owned = await self.heartbeats.run(ownership.owned_sessions, worker_id=self.registration.worker_id)
        strays = {(session_id, fence) for session_id, fence in owned if session_id not in self.drains}
        for session_id, fence in strays & self._strays.keys():
            if not self._strays[session_id, fence]:
                logger.error("worker.stray", extra={"session": session_id})
            await self.housekeeping.run(
                hooks.orphan_found, session_id=session_id, worker_id=self.registration.worker_id
            )
        self._strays = {stray: stray in self._strays for stray in strays}

    async def _sweep(self) -> None:
        try:
            await self.housekeeping.run(self._look_at_the_others)
        except (DatabaseError, InterfaceError):
            logger.warning("worker.sweep_failed", extra={"worker": self.registration.worker_id})

    def _look_at_the_others(self) -> None:
        now = timezone.now()
        for worker in self.watch.look(now=now):
            logger.warning("worker.dead", extra={"worker": worker.pk, "death": worker.death})
        hooks.sweep(now, self.registration.worker_id)

    async def _checkpoint(self) -> None:
        drains = list(self.drains.values())
        await self._write_checkpoints(drains)
        for drain in drains:
            if drain.step is not None:
                await drain.step.write_progress()

    async def _write_checkpoints(self, drains: list[Drain]) -> None:
        grown = [
            checkpoints.Checkpoint(held=drain.held, part_id=part_id, text=text)
            for drain in drains
            if drain.held is not None
            for part_id, text in drain.grown_parts()
        ]
        if not grown:
            return
        try:
            await self.database.run(checkpoints.write, checkpoints=grown)
        except (DatabaseError, InterfaceError):
            logger.warning("worker.checkpoint_failed", extra={"worker": self.registration.worker_id})

    # Start and stop

    def __post_init__(self) -> None:
        self.watch = ownership.Watch(lease_seconds=settings.HOLDFAST_LEASE_SECONDS)
        self.thread = threading.Thread(target=self._run, name="coordinator", daemon=False)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_until_complete(self._main())
        finally:
            self.loop.close()

    async def _main(self) -> None:
        publish.use_loop(self.loop)
        self._spawn(self._every(settings.HOLDFAST_HEARTBEAT_SECONDS, self._beat))
        self._spawn(self._every(settings.HOLDFAST_CHECKPOINT_SECONDS, self._checkpoint))
        self._spawn(self._every(settings.HOLDFAST_CHECKPOINT_SECONDS, self._store_figures))
        self._spawn(self._every(settings.HOLDFAST_SWEEP_SECONDS, self._sweep, at_once=True))
        self._spawn(self._listen(self.registration.worker_id))
        await self._ended.wait()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await registry.aclose()
        await self._mark_stopped()
        await self._store_figures()
        await publish.finish()
        for threads in (self.database, self.heartbeats, self.housekeeping):
            threads.close()

    async def _store_figures(self) -> None:
        await self.housekeeping.run(figures.store)

    async def _mark_stopped(self) -> None:
        for life in (*self.earlier_lives, self.registration):
            try:
                await self.heartbeats.run(life.stop, now=timezone.now())
            except (DatabaseError, InterfaceError):
                logger.warning("worker.stop_not_stored", extra={"worker": life.worker_id})

    def _spawn(self, work: Any) -> None:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _every(
        self, seconds: float, act: Callable[[], Awaitable[None]], *, at_once: bool = False
    ) -> None:
        """Act again and again; workers that started together drift apart by a little jitter."""
        if not at_once:
            await asyncio.sleep(seconds)
        while True:
            try:
                await act()
            except Exception:
                logger.exception("worker.periodic_failed")
            await asyncio.sleep(seconds * random.uniform(0.95, 1.05))  # noqa: S311 - spreads load, guards nothing

    async def _listen(self, worker_id: str) -> None:
        await nudge.listen(worker_id, self.on_nudge)

    async def stop(self, *, settle_seconds: float) -> None:
        """Take nothing new, let steps settle, interrupt the rest, mark the worker stopped."""
        self.request_stop()
        await self._wait_for_drains(settle_seconds)
        self.is_interrupting = True
        for drain in list(self.drains.values()):
            drain.cancel("shutdown")
        await self._wait_for_drains(None)
        self._ended.set()

    def request_stop(self) -> None:
        self.is_stopping = True
        self._place_free.set()
        for drain in self.drains.values():
            drain.nudge()

    async def _wait_for_drains(self, seconds: float | None) -> None:
        try:
            async with asyncio.timeout(seconds):
                while self.drains:
                    self._place_free.clear()
                    await self._place_free.wait()
        except TimeoutError:
            logger.info("worker.grace_over", extra={"drains": len(self.drains)})


def _register() -> ownership.Registration:
    return ownership.register(
        kind="worker",
        run_dir=settings.HOLDFAST_RUN_DIR,
        lease_seconds=settings.HOLDFAST_LEASE_SECONDS,
        now=timezone.now(),
    )


# The one coordinator of this process

_here: tuple[int, Coordinator] | None = None


def start() -> Coordinator:
    """Start this process's coordinator, if it has none yet: register the worker, run the loop.

    Called in a worker child after its fork. Raises OSError when the run directory cannot be used, or a
    database error when the worker's row cannot be stored.
    """
    global _here
    running = find()
    if running is not None:
        return running
    database_threads = 1 if connection.vendor == "sqlite" else POSTGRESQL_THREADS
    coordinator = Coordinator(
        database=DatabaseThreads(threads=database_threads, name="database"),
        heartbeats=DatabaseThreads(threads=1, name="heartbeat"),
        housekeeping=DatabaseThreads(threads=1, name="housekeeping"),
        registration=_register(),
    )
    coordinator.thread.start()
    _here = (os.getpid(), coordinator)
    return coordinator


def find() -> Coordinator | None:
    """This process's coordinator; a forked child has none of its parent's."""
    return _here[1] if _here is not None and _here[0] == os.getpid() else None


def request_stop() -> None:
    """Take nothing new from now on. Safe from any thread, at any time, any number of times."""
    running = find()
    if running is not None:
        running.loop.call_soon_threadsafe(running.request_stop)


def stop(grace: float) -> bool:
    """Stop and release everything. True when it ended in time.

    Steps may settle for ``grace`` seconds; those that did not are interrupted as a shutdown. False when
    releasing itself did not end within a further ``grace``: then the process must end hard, and recovery
    takes over.
    """
    running = find()
    if running is None:
        return True
    stopping: Future[None] = asyncio.run_coroutine_threadsafe(
        running.stop(settle_seconds=grace), running.loop
    )
    running.thread.join(2 * grace + 1)
    return not running.thread.is_alive() and stopping.done()


def hand_over(session_id: str) -> bool:
    """Give a session to this process's coordinator. See Coordinator.hand_over."""
    running = start()
    return asyncio.run_coroutine_threadsafe(running.hand_over(session_id), running.loop).result()
