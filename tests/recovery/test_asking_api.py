"""Asking over the API: whoever asks waits, and nobody waits for them."""

import asyncio
import threading
from typing import Any

from recovery.api import asking
from sessions_app.api import answers, threads
from tests.live.conftest import eventually


async def test_whoever_waits_for_an_answer_holds_no_thread_of_the_api(settings: Any) -> None:
    settings.HOLDFAST_ROLE = "web"
    released = threading.Event()
    waiting: list[str] = []

    def look() -> None:
        waiting.append("here")
        assert released.wait(20)

    asked = [
        asyncio.ensure_future(asking.ask(look, lambda: answers.nothing())) for _ in range(2 * threads.THREADS)
    ]
    await eventually(lambda: len(waiting) >= threads.THREADS, what="many who wait")
    try:
        async with asyncio.timeout(5):
            assert await threads.in_thread(lambda: "served")() == "served"
        assert not any(each.done() for each in asked)
    finally:
        released.set()
    assert {(await each).status_code for each in asked} == {204}
