"""The calls of a step, running: entered together, settled as they end, told to stop together."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from django.utils import timezone

from sessions_app.execution.control import Control
from sessions_app.execution.database import Runs
from sessions_app.execution.planning import Enter
from sessions_app.execution.recorder import Recorder
from sessions_app.execution.settling import Entering, Next, Result
from sessions_app.tools import overflow
from sessions_app.tools.enter import Entered, Failed, enter
from sessions_app.tools.port import INTERRUPTED, ToolContext

logger = logging.getLogger(__name__)

LONGEST_PROGRESS: Final = 2000


class Calls:
    """Enters the calls that are durable and stores their ends."""

    def __init__(self, recorder: Recorder, *, control: Control, database: Runs) -> None:
        self._recorder = recorder
        self._control = control
        self._database = database
        self._running: dict[asyncio.Task[Entered], Enter] = {}
        self._entered: set[str] = set()
        self._is_cancelled = False
        self._progress: dict[str, str] = {}

    async def run(self, following: Next) -> bool:
        """Run until nothing of the step is left to run. True: go on draining; False: released."""
        try:
            while isinstance(following, Entering):
                for call in following.calls:
                    self._running[asyncio.ensure_future(self._enter(call))] = call
                if self._is_cancelled:
                    self._tell_all()
                results = await self._ended()
                if self._is_cancelled:
                    return await self._stopped(results)
                following = await self._database.run(
                    self._recorder.settle,
                    results=results,
                    now=timezone.now(),
                    shutting_down=self._control.is_shutting_down,
                )
            return following.goes_on
        finally:
            self._tell_all()

    def cancel(self) -> None:
        """Tell all calls to end; those that were entered and have no result of their own are unknown."""
        self._is_cancelled = True
        self._tell_all()

    def _tell_all(self) -> None:
        for task in self._running:
            task.cancel()

    async def _enter(self, call: Enter) -> Entered:
        """Everything before the function is entered is only intention: a doubt is waited out first."""
        await self._control.verify()
        self._entered.add(call.part_id)
        return await enter(call.tool, call.input, self._context(call))

    def _context(self, call: Enter) -> ToolContext:
        def progress(text: str) -> None:
            self._progress[call.part_id] = text[:LONGEST_PROGRESS]

        return ToolContext(
            session_id=self._recorder.held.session_id,
            call_id=call.part_id,
            idempotency_key=call.part_id,
            progress=progress,
        )

    async def _ended(self) -> list[Result]:
        """The results of the calls that ended, at least one; of all of them once they were told to stop."""
        when = asyncio.ALL_COMPLETED if self._is_cancelled else asyncio.FIRST_COMPLETED
        done, _ = await asyncio.wait(self._running, return_when=when)
        if self._is_cancelled and len(done) < len(self._running):
            done, _ = await asyncio.wait(self._running)
        results = []
        for task in done:
            call = self._running.pop(task)
            self._progress.pop(call.part_id, None)
            if not task.cancelled():
                results.append(await self._result(call, task.result()))
            elif call.part_id not in self._entered:
                results.append(Result(part_id=call.part_id, error=INTERRUPTED))
        return results

    async def _result(self, call: Enter, entered: Entered) -> Result:
        if isinstance(entered, Failed):
            return Result(part_id=call.part_id, error=entered.error, is_unknown=not entered.known)
        bounded = await asyncio.to_thread(overflow.bound, entered.output)
        return Result(part_id=call.part_id, output=bounded)

    async def _stopped(self, results: Sequence[Result]) -> bool:
        return await self._database.run(
            self._recorder.interrupt,
            reason=self._control.stop_reason or "shutdown",
            now=timezone.now(),
            results=results,
        )

    async def write_progress(self) -> None:
        """Store the newest progress line of each call that told one since the last time."""
        lines, self._progress = self._progress, {}
        if lines:
            await self._database.run(self._recorder.progress, lines=lines, now=timezone.now())


class Settling(Calls):
    """A step whose attempt completed earlier and whose calls waited for a person."""

    async def run(self, following: Next | None = None) -> bool:
        """Enter what was approved, fail what was denied, go on waiting for the rest or end the step."""
        if following is None:
            following = await self._database.run(
                self._recorder.settle,
                results=(),
                now=timezone.now(),
                shutting_down=self._control.is_shutting_down,
            )
        return await super().run(following)

    def grown_parts(self) -> list[tuple[str, str]]:
        """Nothing is written to a message whose attempt has completed."""
        return []
