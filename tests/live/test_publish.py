"""Publishing: from any thread, in order, never in the way."""

import asyncio
import logging
import os
import threading
import time
from itertools import pairwise
from typing import Any

import pytest
from channels.layers import channel_layers
from hypothesis import given
from hypothesis import strategies as st

from sessions_app import log
from sessions_app.live import groups, nudge, packets, publish
from sessions_app.log import StoredEvent
from tests.live.conftest import TroubledLayer, eventually
from tests.support.waiting import until


def stored(seq: int, text: str = "") -> StoredEvent:
    from django.utils import timezone

    data = {"message": "msg_1", "part": "prt_1", "text": text}
    return StoredEvent(
        session_id="ses_1", seq=seq, type="text.ended", version=1, data=dict(data), time=timezone.now()
    )


def items(layer: TroubledLayer) -> list[Any]:
    return [item for _, packet in layer.sent for item in packet["items"]]


async def test_deltas_wait_a_moment_and_an_event_flushes_them_first(layer: TroubledLayer):
    publish.delta("ses_1", "msg_1", "prt_1", 0, "first ")
    await eventually(lambda: layer.sent, what="the first delta")
    for number in range(100):
        publish.delta("ses_1", "msg_1", "prt_1", 6 + number, "x")
    publish.events("ses_1", [stored(1)])
    publish.delta("ses_1", "msg_1", "prt_2", 0, "next")
    await eventually(lambda: len(items(layer)) == 4, what="all of it")
    assert [item[0] for item in items(layer)] == ["delta", "delta", "event", "delta"]
    assert items(layer)[1] == ["delta", "msg_1", "prt_1", 6, "x" * 100]


async def test_the_cost_follows_time_and_not_the_number_of_fragments(layer: TroubledLayer):
    started = time.monotonic()
    sent = 0
    while time.monotonic() - started < 0.5:
        publish.delta("ses_1", "msg_1", "prt_1", sent, "x")
        sent += 1
        await asyncio.sleep(0)
    await publish.finish()
    assert sent > 500
    assert len(layer.sent) <= 25
    assert "".join(item[4] for item in items(layer)) == "x" * sent


async def test_threads_publish_without_waiting_and_each_keeps_its_order(layer: TroubledLayer):
    def tell(name: str) -> None:
        for number in range(200):
            publish.delta(f"ses_{name}", "msg_1", "prt_1", number, chr(97 + number % 26))

    threads = [threading.Thread(target=tell, args=(str(number),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    await publish.finish()
    await eventually(lambda: sum(len(item[4]) for item in items(layer)) == 1600, what="all of it")
    for name in range(8):
        mine = [
            item for _, packet in layer.sent if packet["session"] == f"ses_{name}" for item in packet["items"]
        ]
        assert [item[3] for item in mine] == sorted(item[3] for item in mine)


async def test_a_layer_that_fails_is_told_of_once_and_hurts_nobody(
    layer: TroubledLayer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(publish, "PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(publish._lost, "_quiet_until", 0.0)
    layer.is_away = True
    with caplog.at_level(logging.WARNING, logger="sessions_app.live.publish"):
        for number in range(200):
            publish.events("ses_1", [stored(number)])
            await asyncio.sleep(0.001)
    assert len([record for record in caplog.records if record.message == "live.publish.lost"]) == 1
    layer.is_away = False

    def told_again() -> bool:
        publish.status("ses_1")
        return bool(layer.sent)

    await eventually(told_again, what="a message after the layer was back")


async def test_what_waits_is_bounded_when_the_loop_does_not_turn(
    layer: TroubledLayer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(publish, "MOST_WAITING", 100)
    for number in range(1000):
        publish.delta("ses_1", "msg_1", "prt_1", number, "x")
    publish.post("group", {"type": "test"})
    assert publish._here is not None
    assert publish._here._count == 100
    await publish.finish()
    assert publish._here._count == 0


async def test_a_loop_that_has_closed_is_replaced_by_a_thread_of_our_own(layer: TroubledLayer):
    loop = asyncio.new_event_loop()
    publish.use_loop(loop)
    loop.close()
    publish.status("ses_1")
    await eventually(lambda: layer.sent, what="the message")
    assert publish._here is not None
    assert publish._here.loop is not loop


async def test_nothing_that_is_wrong_with_a_message_reaches_the_caller(
    layer: TroubledLayer, monkeypatch: pytest.MonkeyPatch
):
    def broken(session_id: str) -> str:
        raise RuntimeError("broken")

    publish.delta("ses_1", "msg_1", "prt_1", 0, None)  # type: ignore[arg-type]
    publish.events("ses_1", [None])  # type: ignore[list-item]
    await asyncio.sleep(0.05)
    monkeypatch.setattr(groups, "of_session", broken)
    publish.status("ses_1")
    await asyncio.sleep(0.05)
    monkeypatch.undo()
    publish.status("ses_2")
    await eventually(
        lambda: any(packet.get("session") == "ses_2" for _, packet in layer.sent), what="the next message"
    )


def test_a_fork_has_a_publisher_of_its_own():
    layer = TroubledLayer()
    channel_layers.set("default", layer)
    try:
        publish.status("ses_1")
        until(lambda: layer.sent, what="the parent's message")
        layer.sent.clear()
        child = os.fork()
        if child == 0:
            publish.status("ses_1")
            deadline = time.monotonic() + 5
            while not layer.sent and time.monotonic() < deadline:
                time.sleep(0.01)
            os._exit(0 if layer.sent else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        channel_layers.backends.pop("default", None)
        publish.use_loop(None)


def test_every_commit_is_told():
    from sessions_app.log import listeners

    assert publish.events in listeners._listeners
    before = list(listeners._listeners)
    log.on_commit(publish.events)
    assert listeners._listeners == before


def test_group_names_tell_nothing_and_are_valid(settings: Any):
    names = {
        groups.of_session("ses_aaaaaaaa"),
        groups.of_session("ses_aaaaaaab"),
        groups.of_worker("ses_aaaaaaaa"),
    }
    assert len(names) == 3
    assert all(len(name) < 100 and "aaaa" not in name for name in names)
    groups.of_session.cache_clear()
    settings.SECRET_KEY = "another key, as long as the one before it"
    assert groups.of_session("ses_aaaaaaaa") not in names
    groups.of_session.cache_clear()


async def test_nudges_reach_the_worker_and_a_handler_that_fails_hears_the_next(layer: TroubledLayer):
    heard: list[tuple[str, str]] = []

    async def handler(kind: nudge.Kind, session_id: str) -> None:
        heard.append((kind, session_id))
        if len(heard) == 1:
            raise RuntimeError("broken")

    listening = asyncio.create_task(nudge.listen("wrk_1", handler))
    await eventually(layer.members, what="listening")
    nudge.interrupt(worker_id="wrk_2", session_id="ses_0")
    nudge.interrupt(worker_id="wrk_1", session_id="ses_1")
    nudge.checkpoint(worker_id="wrk_1", session_id="ses_2")
    await eventually(lambda: len(heard) == 2, what="both")
    assert heard == [("interrupt", "ses_1"), ("checkpoint", "ses_2")]
    for odd in ({}, {"kind": "dance", "session": "x"}, {"kind": "interrupt", "session": 5}):
        await layer.group_send(groups.of_worker("wrk_1"), {"type": "nudge", **odd})
    nudge.interrupt(worker_id="wrk_1", session_id="ses_3")
    await eventually(lambda: len(heard) == 3, what="the next")
    listening.cancel()
    await asyncio.wait({listening})


async def test_a_worker_listens_again_when_the_layer_is_back(
    layer: TroubledLayer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(nudge, "RETRY_SECONDS", 0.05)
    heard: list[str] = []

    async def handler(kind: nudge.Kind, session_id: str) -> None:
        heard.append(session_id)

    layer.is_away = True
    listening = asyncio.create_task(nudge.listen("wrk_1", handler))
    await asyncio.sleep(0.1)
    layer.is_away = False
    await eventually(layer.members, what="listening")
    nudge.interrupt(worker_id="wrk_1", session_id="ses_1")
    await eventually(lambda: heard == ["ses_1"], what="the nudge")
    listening.cancel()
    await asyncio.wait({listening})


async def test_nudges_cross_the_real_layers(real_layer: Any):
    heard: list[str] = []

    async def handler(kind: nudge.Kind, session_id: str) -> None:
        heard.append(session_id)

    listening = asyncio.create_task(nudge.listen("wrk_1", handler))

    def nudged() -> bool:
        nudge.interrupt(worker_id="wrk_1", session_id="ses_1")
        return bool(heard)

    await eventually(nudged, what="the nudge")
    listening.cancel()
    await asyncio.wait({listening})


FRAGMENTS = st.lists(
    st.tuples(
        st.sampled_from(["p", "q"]),
        st.text(min_size=1, max_size=5),
        st.sampled_from(["delta"] * 4 + ["event"]),
    ),
    max_size=40,
)


@given(FRAGMENTS)
def test_joining_changes_neither_the_order_nor_the_text(fragments: list[tuple[str, str, str]]):
    lengths = {"p": 0, "q": 0}
    told: list[packets.Item] = []
    for number, (part, text, kind) in enumerate(fragments):
        if kind == "event":
            told.append(["event", number, "x", "", "", "{}"])
        else:
            told.append(["delta", "m", part, lengths[part], text])
            lengths[part] += len(text)
    joined = list(packets.joined(told))
    assert [item for item in joined if item[0] == "event"] == [item for item in told if item[0] == "event"]
    assert _characters(joined) == _characters(told)
    assert all(
        first[0] == "event" or second[0] == "event" or first[2] != second[2]
        for first, second in pairwise(joined)
    )


def _characters(told: list[packets.Item]) -> list[Any]:
    """One entry for each character with its position, so that only cuts and joins are equal."""
    found: list[Any] = []
    for item in told:
        if item[0] == "event":
            found.append(item[1])
        else:
            found += [(item[2], item[3] + index, character) for index, character in enumerate(item[4])]
    return found


def test_a_huge_fragment_is_cut_and_packets_stay_small():
    text = "😀" * 100_000
    made = list(packets.packed("ses_1", [["delta", "m", "p", 0, text], ["status"], ["status"]]))
    cut = [item for packet in made for item in packet["items"] if item[0] == "delta"]
    assert "".join(item[4] for item in cut) == text
    assert [item[3] for item in cut] == list(range(0, 100_000, packets.LARGEST_DELTA))
    assert all(
        sum(len(item[4].encode()) for item in packet["items"] if item[0] == "delta")
        <= 2 * packets.LARGEST_EVENT
        for packet in made
    )
    assert [item for packet in made for item in packet["items"] if item[0] == "status"] == [["status"]]


@pytest.mark.parametrize("text", ["x" * 70_000, "é" * 40_000])
def test_a_large_event_is_a_hint(text: str):
    assert packets.event_item(stored(7, text)) == ["hint", 7]
    assert packets.whole_event_item(stored(7, text))[1] == 7


def test_half_a_surrogate_pair_can_still_be_sent():
    assert packets.to_json({"a": "\ud800é"}).isascii()
    assert packets.to_json({"a": "é"}) == '{"a":"é"}'


def test_repeated_troubles_are_logged_at_a_bounded_rate(caplog: pytest.LogCaptureFixture):
    from sessions_app.live.bounded_log import BoundedLog

    bounded = BoundedLog(logging.getLogger("test"), "trouble", every=0.05)
    with caplog.at_level(logging.WARNING):
        for _ in range(1000):
            bounded.add("why")
        assert len(caplog.records) == 1
        time.sleep(0.06)
        bounded.add("why")
    assert [record.count for record in caplog.records] == [1, 1000]  # type: ignore[attr-defined]
    assert bounded.total == 1001
