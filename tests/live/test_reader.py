"""The reader: the same picture whenever it joins and whatever the layer does."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from schema import events
from sessions_app import sessions
from sessions_app.live import groups, nudge, publish, reader, reads, switchboard
from sessions_app.live.reader import Reader
from sessions_app.models import Session, Worker
from tests.live.conftest import TroubledLayer, act, eventually
from tests.live.scene import Conversation, Part, Picture
from tests.support import world

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


class Following:
    """A reader whose frames go into a picture."""

    def __init__(self, session_id: str, *, after: int = 0) -> None:
        self.reader = Reader(session_id, after=after)
        self.picture = Picture(after=after)
        self.is_over = False
        self.paused = asyncio.Event()
        self.paused.set()
        self.check: Callable[[], None] = lambda: None

    async def run(self) -> None:
        async for frame in self.reader.frames():
            await self.paused.wait()
            self.picture.take(frame.text())
            self.check()
        self.is_over = True


@asynccontextmanager
async def following(session_id: str, *, after: int = 0, ready: bool = True) -> AsyncIterator[Following]:
    follow = Following(session_id, after=after)
    task = asyncio.create_task(follow.run())
    try:
        if ready:
            await eventually(lambda: follow.picture.ready or task.done(), what="ready")
        yield follow
        if task.done():
            task.result()
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and task.exception() is not None:
            raise AssertionError("the picture did not fit") from task.exception()


async def ended(follow: Following, head_seq: int) -> None:
    await eventually(lambda: follow.picture.seq == head_seq, what=f"event {head_seq}")


async def test_it_is_sent_what_is_stored_and_then_what_follows_each_once(layer: TroubledLayer):
    scene = await act(Conversation.start)
    await act(scene.prompt)
    await act(scene.start_step)
    part = await act(scene.open_part)
    scene.say(part, "Hello ")
    await act(scene.checkpoint)
    await publish.finish()
    async with following(scene.session_id) as follow:
        assert follow.picture.texts == {part.id: "Hello "}
        assert follow.picture.kinds[-2:] == ["status", "ready"]
        scene.say(part, "wor")
        scene.say(part, "ld")
        await eventually(lambda: follow.picture.texts[part.id] == "Hello world", what="the text")
        await act(scene.end_part, part)
        await act(scene.fail_step)
        await ended(follow, await act(scene.head_seq))
    assert follow.picture.ended == {part.id: "Hello world"}
    assert follow.picture.kinds.count("open") == 1


async def test_after_the_last_event_it_is_sent_only_the_open_parts(layer: TroubledLayer):
    scene = await act(Conversation.start)
    await act(scene.start_step)
    part = await act(scene.open_part)
    scene.say(part, "Hello")
    await act(scene.checkpoint)
    head = await act(scene.head_seq)
    async with following(scene.session_id, after=head) as follow:
        assert follow.picture.kinds == ["open", "status", "ready"]
        assert follow.picture.texts == {part.id: "Hello"}
        assert follow.picture.ready == [head]


async def test_a_position_that_was_never_reached_counts_as_the_newest(layer: TroubledLayer):
    scene = await act(Conversation.start)
    async with following(scene.session_id, after=10_000) as follow:
        assert follow.picture.ready == [1]
        follow.picture.seq = 1
        await act(scene.prompt)
        await ended(follow, 2)


async def test_a_long_log_comes_whole_page_by_page(layer: TroubledLayer):
    scene = await act(Conversation.start)
    await act(
        scene.append,
        *[events.SessionUpdated(title=f"title {number}") for number in range(1200)],
    )
    async with following(scene.session_id) as follow:
        assert follow.picture.seq == 1201
        assert follow.picture.ready == [1201]


async def test_deltas_of_one_moment_are_joined_and_an_event_comes_after_them(layer: TroubledLayer):
    scene = await act(Conversation.start)
    await act(scene.start_step)
    part = await act(scene.open_part)
    async with following(scene.session_id) as follow:
        for number in range(200):
            scene.say(part, f"{number} ")
        await act(scene.end_part, part)
        await eventually(lambda: part.id in follow.picture.ended, what="the end")
    deltas = follow.picture.kinds.count("delta")
    assert 1 <= deltas <= 5
    assert follow.picture.kinds.index("delta") < len(follow.picture.kinds) - 1


async def test_a_large_event_travels_as_a_hint_and_arrives_whole(layer: TroubledLayer):
    scene = await act(Conversation.start)
    await act(scene.start_step)
    part = await act(scene.open_part)
    async with following(scene.session_id) as follow:
        layer.sent.clear()
        part.text = "é" * 200_000
        await act(scene.end_part, part)
        await eventually(lambda: follow.picture.ended.get(part.id) == part.text, what="the large event")
    items = [item for _, packet in layer.sent for item in packet.get("items", ())]
    assert ["hint", 4] in items
    assert all(len(json.dumps(packet)) < 1000 for _, packet in layer.sent)


async def test_a_gap_in_the_text_nudges_the_owner_and_is_healed_at_once(layer: TroubledLayer):
    scene = await act(Conversation.start)
    await act(scene.acquire)
    await act(scene.start_step)
    part = await act(scene.open_part)
    nudged: list[tuple[str, str]] = []

    async def save(kind: nudge.Kind, session_id: str) -> None:
        nudged.append((kind, session_id))
        await act(scene.checkpoint)

    assert scene.worker is not None
    listening = asyncio.create_task(nudge.listen(scene.worker.worker_id, save))
    await eventually(lambda: groups.of_worker(scene.worker.worker_id) in layer.members(), what="listening")
    async with following(scene.session_id) as follow:
        layer.lose = 1.0
        layer.sent.clear()
        scene.say(part, "lost ")
        await eventually(lambda: layer.sent, what="the loss")
        layer.lose = 0.0
        await asyncio.sleep(0.05)
        started = asyncio.get_running_loop().time()
        scene.say(part, "found")
        await eventually(lambda: follow.picture.texts[part.id] == "lost found", what="healing")
        assert asyncio.get_running_loop().time() - started < 0.9
    assert follow.picture.kinds.count("open") == 1
    assert set(nudged) == {("checkpoint", scene.session_id)}
    listening.cancel()
    await asyncio.wait({listening})
    await act(scene.worker.stop, now=timezone.now())


async def test_without_any_message_of_the_layer_it_is_slow_but_right(layer: TroubledLayer):
    layer.lose = 1.0
    scene = await act(Conversation.start)
    await act(scene.acquire)
    async with following(scene.session_id) as follow:
        await act(scene.prompt)
        await act(scene.start_step)
        part = await act(scene.open_part)
        for number in range(3):
            scene.say(part, f"{number} ")
            await act(scene.checkpoint)
            await eventually(
                lambda: follow.picture.texts.get(part.id) == part.text, within=6, what="the text"
            )
        await act(scene.end_part, part)
        await act(scene.fail_step)
        await ended(follow, await act(scene.head_seq))
        await act(scene.release)
        await eventually(lambda: follow.picture.statuses[-1]["state"] == "idle", within=6, what="idle")
    assert follow.picture.ended == {part.id: "0 1 2 "}
    assert follow.picture.kinds.count("open") <= 1
    assert scene.worker is not None
    await act(scene.worker.stop, now=timezone.now())


async def test_a_layer_that_is_away_is_joined_when_it_is_back(
    layer: TroubledLayer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(switchboard, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(switchboard, "JOIN_SECONDS", 0.2)
    layer.is_away = True
    scene = await act(Conversation.start)
    async with following(scene.session_id) as follow:
        await act(scene.prompt)
        await ended(follow, 2)
        layer.is_away = False
        await eventually(lambda: groups.of_session(scene.session_id) in layer.members(), what="joining")


async def test_two_readers_of_one_session_have_the_same_picture(layer: TroubledLayer):
    scene = await act(Conversation.start)
    await act(scene.start_step)
    part = await act(scene.open_part)
    async with following(scene.session_id) as first, following(scene.session_id) as second:
        for number in range(10):
            scene.say(part, f"{number} ")
            await asyncio.sleep(0.005)
        await act(scene.end_part, part)
        for picture in (first.picture, second.picture):
            await eventually(partial(_has_ended, picture, part), what="the end")


async def test_a_sync_starts_over_from_where_the_client_says(layer: TroubledLayer):
    scene = await act(Conversation.start)
    await act(scene.prompt)
    await act(scene.start_step)
    part = await act(scene.open_part)
    scene.say(part, "Hello")
    await act(scene.checkpoint)
    async with following(scene.session_id) as follow:
        follow.picture.restart(after=1)
        follow.reader.sync(after=1)
        await eventually(lambda: len(follow.picture.ready) == 2, what="ready again")
        assert follow.picture.seq == 4
        assert follow.picture.texts == {part.id: "Hello"}


async def test_a_deleted_session_ends_the_reader(layer: TroubledLayer):
    scene, other = await act(Conversation.start), await act(Conversation.start)
    async with following(scene.session_id) as follow, following(other.session_id) as stays:
        await act(sessions.delete, session_id=scene.session_id, now=timezone.now())
        publish.status(scene.session_id)
        await eventually(lambda: follow.is_over, what="the end")
        assert follow.reader.ended == "gone"
        assert not stays.is_over


async def test_a_session_that_never_was_ends_the_reader(layer: TroubledLayer):
    async with following("ses_no-such-session", ready=False) as follow:
        await eventually(lambda: follow.is_over, what="the end")
        assert follow.reader.ended == "gone"


async def test_a_reader_that_takes_nothing_is_ended_and_keeps_no_more_than_its_bound(
    layer: TroubledLayer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(reader, "MOST_FRAMES", 20)
    monkeypatch.setattr(publish, "COALESCE_SECONDS", 0.0)
    scene = await act(Conversation.start)
    await act(scene.start_step)
    part = await act(scene.open_part)
    async with following(scene.session_id) as follow:
        follow.paused.clear()
        for _ in range(100):
            scene.say(part, "more ")
            await asyncio.sleep(0.002)
        assert follow.reader.ended == "slow"
        assert len(follow.reader._outbox) <= 22
        follow.paused.set()
        await eventually(lambda: follow.is_over, what="the end")


async def test_a_slow_reader_of_a_long_log_is_waited_for(
    layer: TroubledLayer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(reader, "MOST_FRAMES", 20)
    monkeypatch.setattr(reads, "PAGE", 50)
    scene = await act(Conversation.start)
    await act(scene.append, *[events.SessionUpdated(title=f"title {number}") for number in range(400)])
    async with following(scene.session_id, ready=False) as follow:
        follow.paused.clear()
        await asyncio.sleep(0.1)
        await act(scene.append, *[events.SessionUpdated(title=f"later {number}") for number in range(10)])
        await asyncio.sleep(0.1)
        assert follow.reader.ended is None
        assert len(follow.reader._outbox) <= 80
        follow.paused.set()
        await ended(follow, 411)


async def test_a_reader_that_stalls_is_ended_in_time(layer: TroubledLayer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reader, "STALL_SECONDS", 0.2)
    monkeypatch.setattr(switchboard, "LOOK_SECONDS", 0.05)
    scene = await act(Conversation.start)
    async with following(scene.session_id) as follow:
        follow.paused.clear()
        await act(scene.prompt)
        await act(scene.prompt)
        await eventually(lambda: follow.reader.ended == "slow", what="the end")
        follow.paused.set()


async def test_a_quiet_reader_is_pinged(layer: TroubledLayer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reader, "PING_SECONDS", 0.1)
    monkeypatch.setattr(switchboard, "LOOK_SECONDS", 0.05)
    scene = await act(Conversation.start)
    async with following(scene.session_id) as follow:
        await eventually(lambda: follow.picture.kinds.count("ping") >= 2, what="pings")


async def test_the_status_is_told_when_it_changes_and_never_twice_the_same(layer: TroubledLayer):
    scene = await act(Conversation.start)
    async with following(scene.session_id) as follow:
        await act(scene.acquire)
        publish.status(scene.session_id)
        await eventually(lambda: follow.picture.statuses[-1]["state"] == "busy", what="busy")
        for _ in range(5):
            publish.status(scene.session_id)
            await asyncio.sleep(0.12)
        await act(scene.release)
        await eventually(lambda: follow.picture.statuses[-1]["state"] == "idle", what="idle")
    assert [status["state"] for status in follow.picture.statuses] == ["idle", "busy", "idle"]
    assert scene.worker is not None
    await act(scene.worker.stop, now=timezone.now())


async def test_an_owner_that_died_is_told_although_nothing_was_committed(layer: TroubledLayer):
    scene = await act(Conversation.start)
    await act(scene.acquire)
    assert scene.worker is not None
    async with following(scene.session_id) as follow:
        assert follow.picture.statuses[-1]["state"] == "busy"
        await eventually(lambda: switchboard.here()._seen, what="a first look")
        scene.worker.lock._close_copy()
        await eventually(
            lambda: follow.picture.statuses[-1]["state"] == "orphaned", within=5, what="orphaned"
        )
        assert await act(lambda: Worker.objects.get(pk=scene.worker.worker_id).dead_at is not None)


async def test_a_recoverer_that_died_is_told_although_nothing_was_committed(layer: TroubledLayer):
    """What it parked and could not settle waits for a person, and says so."""
    scene = await act(Conversation.start)
    await act(scene.acquire)
    assert scene.worker is not None
    scene.worker.lock._close_copy()
    recoverer = await act(world.worker)
    await act(world.change, scene.session_id, parked=True, recovering_id=recoverer.pk)
    async with following(scene.session_id) as follow:
        assert follow.picture.statuses[-1]["state"] == "orphaned"
        await eventually(lambda: switchboard.here()._seen, what="a first look")
        await act(Worker.objects.filter(pk=recoverer.pk).update, dead_at=timezone.now(), death="assumed")
        await eventually(
            lambda: follow.picture.statuses[-1]["state"] == "needs_decision", within=5, what="needs_decision"
        )


async def test_a_status_does_not_run_ahead_of_its_events(layer: TroubledLayer):
    scene = await act(Conversation.start)
    layer.delay = 0.3
    async with following(scene.session_id) as follow:
        follow.check = lambda: _status_follows(follow.picture)
        for _ in range(10):
            await act(scene.prompt)
            publish.status(scene.session_id)
        await ended(follow, 11)
        await eventually(lambda: follow.picture.statuses[-1]["pending"]["steer"] == 10, what="the status")


def _status_follows(picture: Picture) -> None:
    assert all(status["head_seq"] <= picture.seq for status in picture.statuses)


async def test_nobody_is_left_behind_when_the_readers_are_gone(layer: TroubledLayer):
    scene = await act(Conversation.start)
    async with following(scene.session_id):
        assert layer.members() == {groups.of_session(scene.session_id), groups.of_entries()}
    await eventually(lambda: not layer.members(), what="leaving")
    await eventually(lambda: not switchboard.here()._tasks, what="rest")
    async with following(scene.session_id) as again:
        await act(scene.prompt)
        await ended(again, 2)


async def converse(scene: Conversation, chance: random.Random, *, turns: int) -> None:
    """Write for a while, as a worker would, checkpoints now and then."""
    await act(scene.prompt)
    await act(scene.start_step)
    part = await act(scene.open_part)
    for _ in range(turns):
        roll = chance.random()
        if roll < 0.04:
            await act(scene.end_part, part)
            part = await act(scene.open_part, chance.choice(["text", "reasoning"]))
        elif roll < 0.08:
            await act(scene.prompt)
        elif roll < 0.14:
            await act(scene.checkpoint)
        else:
            scene.say(part, chance.choice(["a ", "bcd", "😀", "né", "x" * 30]))
            await asyncio.sleep(chance.random() * 0.01)
    await act(scene.end_part, part)
    await act(scene.fail_step)


async def check_picture_during(
    scene: Conversation, chance: random.Random, *, readers: int, turns: int
) -> None:
    """Readers come at random moments and have a true picture at each and the stored one in the end."""
    writing = asyncio.create_task(converse(scene, chance, turns=turns))
    follows: list[Following] = []
    tasks = []
    for _ in range(readers):
        await asyncio.sleep(chance.random() * 0.3)
        follow = Following(scene.session_id)
        follow.check = partial(_is_prefix, scene, follow.picture)
        follows.append(follow)
        tasks.append(asyncio.create_task(follow.run()))
    await writing
    head = await act(scene.head_seq)
    stored = {part.id: part.text for part in scene.parts.values()}
    try:
        for follow, task in zip(follows, tasks, strict=True):
            await eventually(partial(_is_at, follow, task, head), within=20, what="the end")
            if task.done():
                task.result()
            assert follow.picture.ended == stored
            assert follow.picture.texts == stored
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def _has_ended(picture: Picture, part: Part) -> bool:
    return picture.ended == {part.id: part.text}


def _is_at(follow: Following, task: "asyncio.Task[None]", seq: int) -> bool:
    return task.done() or follow.picture.seq == seq


def _is_prefix(scene: Conversation, picture: Picture) -> None:
    for part_id, text in picture.texts.items():
        assert part_id in picture.ended or scene.parts[part_id].text.startswith(text)


@pytest.mark.parametrize("seed", range(8))
async def test_lost_repeated_and_reordered_messages_change_nothing_in_the_end(
    layer: TroubledLayer, seed: int
):
    chance = random.Random(seed)
    layer.chance = random.Random(seed + 1)
    layer.lose, layer.repeat, layer.delay = chance.choice([0.1, 0.5]), 0.3, chance.choice([0.02, 0.2])
    scene = await act(Conversation.start)
    await check_picture_during(scene, chance, readers=4, turns=120)


@pytest.mark.parametrize("seed", range(2))
async def test_the_real_layers_give_the_same_picture(real_layer: Any, seed: int):
    scene = await act(Conversation.start)
    await check_picture_during(scene, random.Random(seed), readers=4, turns=150)


async def test_the_real_layers_carry_nudges_and_pictures_that_lose_packets(
    real_layer: Any, monkeypatch: pytest.MonkeyPatch
):
    chance = random.Random(5)
    send = real_layer.group_send

    async def lossy(group: str, message: dict[str, Any]) -> None:
        if chance.random() < 0.3:
            return
        await send(group, message)
        if chance.random() < 0.3:
            await send(group, message)

    monkeypatch.setattr(real_layer, "group_send", lossy, raising=False)
    scene = await act(Conversation.start)
    await check_picture_during(scene, chance, readers=4, turns=120)


async def test_readers_cost_few_statements_however_many_they_are(layer: TroubledLayer):
    scenes = [await act(Conversation.start) for _ in range(3)]
    counted: list[str] = []

    def count(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        counted.append(sql)
        return execute(sql, params, many, context)

    follows = [Following(scenes[number % 3].session_id) for number in range(60)]
    tasks = [asyncio.create_task(follow.run()) for follow in follows]
    await eventually(lambda: all(follow.picture.ready for follow in follows), what="ready")
    await asyncio.sleep(1.2)
    original = reads._call

    def counting(unit: Any, *args: Any, **kwargs: Any) -> Any:
        with connections["default"].execute_wrapper(count):
            return original(unit, *args, **kwargs)

    reads._call = counting
    try:
        await asyncio.sleep(4.2)
    finally:
        reads._call = original
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    selects = [sql for sql in counted if sql.lstrip().upper().startswith("SELECT")]
    assert 1 <= len(selects) <= 6, selects


async def test_the_bytes_on_the_wire_grow_with_the_answer_and_not_with_its_square(layer: TroubledLayer):
    sizes = {}
    for words in (500, 2000):
        scene = await act(Conversation.start)
        await act(scene.start_step)
        part = await act(scene.open_part)
        async with following(scene.session_id) as follow:
            layer.sent.clear()
            for number in range(words):
                scene.say(part, f"{number % 10} word ")
                if number % 20 == 0:
                    await asyncio.sleep(0.001)
            await act(scene.end_part, part)
            await eventually(partial(_has_ended, follow.picture, part), what="the end")
            layer_bytes = sum(len(json.dumps(packet)) for _, packet in layer.sent)
            sizes[words] = (follow.picture.bytes, layer_bytes, len(part.text))
    for kind in (0, 1):
        assert sizes[2000][kind] < 5 * sizes[500][kind]
        assert sizes[2000][kind] < 4 * sizes[2000][2] + 5000


async def test_an_owed_run_in_the_future_shows_in_the_status_by_itself(layer: TroubledLayer):
    scene = await act(Conversation.start)
    async with following(scene.session_id) as follow:
        soon = timezone.now() + timedelta(hours=1)
        await act(lambda: Session.objects.filter(pk=scene.session_id).update(owed_at=soon))
        await eventually(lambda: follow.picture.statuses[-1]["state"] != "idle", within=5, what="a status")
