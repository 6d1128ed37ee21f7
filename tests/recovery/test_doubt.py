"""Immediately before it may have an effect, a drain looks once more whether the session is still its own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest
from asgiref.sync import sync_to_async

from sessions_app import ownership
from sessions_app.execution.coordinator import Coordinator, Drain
from sessions_app.log import FenceLost
from sessions_app.models import Session
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
        return await sync_to_async(function)(**arguments)


def drain(lost: Lost, process: Process) -> Drain:
    return Drain(cast("Coordinator", process), lost.id, held=lost.held)


async def taken_over() -> Lost:
    """A session whose worker was declared dead and that was recovered meanwhile."""

    def make() -> Lost:
        lost = Lost().dies()
        lost.recovered()
        return lost

    return await sync_to_async(make)()


async def test_a_worker_that_was_declared_dead_looks_again_although_its_new_life_is_in_no_doubt() -> None:
    lost = await taken_over()
    reborn = await sync_to_async(world.worker)()

    with pytest.raises(FenceLost):
        await drain(lost, Process(reborn.pk)).verify()


async def test_a_worker_in_doubt_waits_until_it_is_certain_and_then_looks() -> None:
    lost = await taken_over()
    process = Process(lost.owner, is_doubtful=True)

    with pytest.raises(FenceLost):
        await drain(lost, process).verify()

    assert not process.is_doubtful


async def test_whoever_still_holds_its_session_goes_on() -> None:
    lost = await sync_to_async(Lost)()

    for process in (Process(lost.owner), Process(lost.owner, is_doubtful=True), Process("wrk_reborn")):
        await drain(lost, process).verify()

    owner = await sync_to_async(lambda: Session.objects.get(pk=lost.id).owner_id)()
    assert owner == lost.owner
    await sync_to_async(ownership.verify)(held=lost.held)
