"""Immediately before it may have an effect, a drain looks once more whether the session is still its own."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest
from django.db import connections

from sessions_app.execution.coordinator import Coordinator, Drain
from sessions_app.log import FenceLost
from tests.recovery.losses import Lost
from tests.support import world

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


@dataclass
class Process:
    """As much of a coordinator as a drain asks before it goes on."""

    worker_id: str
    is_doubtful: bool = False

    @property
    def registration(self) -> "Process":
        return self

    @property
    def database(self) -> "Process":
        return self

    def is_in_doubt(self) -> bool:
        return self.is_doubtful

    async def certain(self) -> None:
        self.is_doubtful = False

    async def run(self, function: Callable[..., Any], **arguments: Any) -> Any:
        def in_a_thread() -> Any:
            try:
                return function(**arguments)
            finally:
                connections.close_all()

        return await asyncio.to_thread(in_a_thread)


def verify(lost: Lost, process: Process) -> None:
    asyncio.run(Drain(cast("Coordinator", process), lost.id, held=lost.held).verify())


def taken_over() -> Lost:
    """A session whose worker was declared dead and that was recovered meanwhile."""
    lost = Lost().dies()
    lost.recovered()
    return lost


def test_a_worker_that_was_declared_dead_looks_again_although_its_new_life_is_in_no_doubt() -> None:
    lost = taken_over()
    reborn = world.worker()

    with pytest.raises(FenceLost):
        verify(lost, Process(reborn.pk))


def test_a_worker_in_doubt_waits_until_it_is_certain_and_then_looks() -> None:
    lost = taken_over()
    process = Process(lost.owner, is_doubtful=True)

    with pytest.raises(FenceLost):
        verify(lost, process)

    assert not process.is_doubtful


def test_whoever_still_holds_its_session_goes_on() -> None:
    lost = Lost()

    for process in (Process(lost.owner), Process(lost.owner, is_doubtful=True), Process("wrk_reborn")):
        verify(lost, process)

    assert lost.row.owner_id == lost.owner
