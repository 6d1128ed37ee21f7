"""What a step asks of the drain around it."""

from typing import Literal, Protocol

StopReason = Literal["user", "shutdown"]


class Control(Protocol):
    @property
    def stop_reason(self) -> StopReason | None:
        """Why the step was cancelled; None while it was not."""

    @property
    def is_shutting_down(self) -> bool: ...

    async def certain(self) -> None:
        """Wait until the worker has no doubt about its ownership."""

    async def verify(self) -> None:
        """Immediately before an effect: wait out a doubt. Raises FenceLost when the session was lost in it."""
