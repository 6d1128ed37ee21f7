"""The loop that keeps the children alive until it is told to stop, and then sees them end."""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from sessions_app.supervisor.child import Child

_LOOK_SECONDS: Final = 0.1
_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_IN_ORDER: Final = (0, None, -signal.SIGTERM)
"""How a child may have ended: by itself, before the stop, or by the signal that asked it (a server that is
about to exit has no handler any more)."""

Say = Callable[[str], None]


class Supervisor:
    """``greet`` is called again and again after the start, until it says that it has greeted; ``close`` once,
    when the stop begins."""

    def __init__(
        self,
        *,
        children: Sequence[Child],
        grace: float,
        say: Say,
        greet: Callable[[], bool],
        close: Callable[[], None],
    ) -> None:
        self._children = children
        self._grace = grace
        self._say = say
        self._greet = greet
        self._close = close
        self._stops = 0

    def run(self) -> int:
        """Returns the exit code once every child has ended: 0 if all of them ended in order."""
        with self._signals() as wake:
            for child in self._children:
                child.start()
            self._watch(wake)
            return self._stop(wake)

    def _watch(self, wake: int) -> None:
        greeted = False
        while not self._stops:
            _rest(wake)
            for child in self._children:
                if news := child.tend():
                    self._say(news)
            greeted = greeted or self._greet()

    def _stop(self, wake: int) -> int:
        self._say("Stopping. Ctrl-C again kills.")
        self._close()
        asked = self._stops
        deadline = time.monotonic() + self._grace
        for is_last in (False, True):
            stopping = [child for child in self._children if child.stops_last == is_last]
            for child in stopping:
                child.terminate()
            while _any_alive(stopping) and self._stops == asked and time.monotonic() < deadline:
                _rest(wake)
        for child in self._alive():
            self._say(f"{child.name} did not stop in time and is killed")
            child.kill()
            child.wait()
        failed = [child.name for child in self._children if child.exit_code() not in _IN_ORDER]
        self._say(f"Stopped, but not in order: {', '.join(failed)}." if failed else "Stopped.")
        return 1 if failed else 0

    def _alive(self) -> list[Child]:
        return [child for child in self._children if child.is_alive()]

    @contextlib.contextmanager
    def _signals(self) -> Iterator[int]:
        """Handlers only count; a byte per signal ends the rest of the loop at once."""
        looked_at, written = os.pipe()
        for end in (looked_at, written):
            os.set_blocking(end, False)
        before = {number: signal.signal(number, self._count) for number in _STOP_SIGNALS}
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(written)
        try:
            yield looked_at
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(looked_at)
            os.close(written)

    def _count(self, signum: int, frame: object) -> None:
        self._stops += 1


def _any_alive(children: Sequence[Child]) -> bool:
    return any(child.is_alive() for child in children)


def _rest(wake: int) -> None:
    select.select([wake], [], [], _LOOK_SECONDS)
    with contextlib.suppress(BlockingIOError):
        os.read(wake, 4096)
