"""The follower alone: any order, loss and repetition of what arrives gives the picture of the log."""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.live.follower import MOST_HELD_CHARACTERS, Follower, Text
from sessions_app.live.packets import Item
from tests.live.scene import Picture

MESSAGE = "msg_1"


def event(seq: int, kind: str, part: str = "", **data: Any) -> Item:
    body = {"seq": seq, "type": kind, "data": {"message": MESSAGE, "part": part, **data}}
    return ["event", seq, kind, MESSAGE, part, json.dumps(body)]


def delta(part: str, offset: int, text: str) -> Item:
    return ["delta", MESSAGE, part, offset, text]


class Log:
    """Stored truth that grows by itself, and what was told of it."""

    def __init__(self) -> None:
        self.events: list[Item] = []
        self.told: list[Item] = []
        self.texts: dict[str, str] = {}
        self.checkpoints: dict[str, str] = {}

    def append(self, kind: str, part: str = "", **data: Any) -> None:
        self.events.append(event(len(self.events) + 1, kind, part, **data))
        self.told.append(self.events[-1])

    def start(self, part: str) -> None:
        self.append("text.started", part)
        self.texts[part] = ""
        self.checkpoints[part] = ""

    def say(self, part: str, text: str) -> None:
        self.told.append(delta(part, len(self.texts[part]), text))
        self.texts[part] += text

    def checkpoint(self, part: str) -> None:
        self.checkpoints[part] = self.texts[part]

    def end(self, part: str) -> None:
        self.append("text.ended", part, text=self.texts[part])
        del self.checkpoints[part]

    def load(self, follower: Follower) -> None:
        follower.start_load()
        texts = [Text(message=MESSAGE, part=part, text=text) for part, text in self.checkpoints.items()]
        follower.loaded(events=self.events[follower.seq :], texts=texts, is_last=True)


def drain(follower: Follower, picture: Picture) -> None:
    for frame in follower.take_frames():
        picture.take(frame.text())


def lacks_events(follower: Follower) -> bool:
    return follower.is_behind


def followed(log: Log, *, after: int = 0) -> tuple[Follower, Picture]:
    follower, picture = Follower(after=after), Picture(after=after)
    log.load(follower)
    drain(follower, picture)
    return follower, picture


def test_what_arrives_in_order_is_sent_at_once_as_deltas():
    log = Log()
    follower, picture = followed(log)
    log.start("p")
    log.say("p", "Hello ")
    log.say("p", "world")
    follower.take(log.told)
    drain(follower, picture)
    assert picture.kinds == ["event", "delta", "delta"]
    assert picture.texts == {"p": "Hello world"}
    assert not lacks_events(follower)
    assert not follower.gaps()


def test_a_reader_that_joins_is_sent_the_text_so_far_and_then_only_what_follows():
    log = Log()
    log.start("p")
    log.say("p", "Hello ")
    log.checkpoint("p")
    log.say("p", "wor")
    follower, picture = followed(log)
    assert picture.texts == {"p": "Hello "}
    follower.take(log.told)
    drain(follower, picture)
    assert picture.texts == {"p": "Hello wor"}


def test_offsets_count_code_points():
    log = Log()
    log.start("p")
    log.say("p", "a😀é")
    log.checkpoint("p")
    follower, picture = followed(log)
    log.say("p", "👩‍🚀")
    log.say("p", "!")
    follower.take([delta("p", 2, "é👩‍🚀!")])
    drain(follower, picture)
    assert picture.texts == {"p": "a😀é👩‍🚀!"}


def test_a_gap_is_not_guessed_over_and_the_checkpoint_replaces_the_text():
    log = Log()
    log.start("p")
    follower, picture = followed(log)
    log.say("p", "one ")
    log.say("p", "two ")
    log.say("p", "three")
    follower.take(log.told[2:])
    drain(follower, picture)
    assert picture.texts == {"p": ""}
    assert follower.gaps() == {"p": 0}
    follower.stored_text(Text(message=MESSAGE, part="p", text="one two "))
    drain(follower, picture)
    assert picture.kinds[-2:] == ["open", "delta"]
    assert picture.texts == {"p": "one two three"}
    assert not follower.gaps()


def test_a_checkpoint_that_is_behind_does_not_take_text_back():
    log = Log()
    log.start("p")
    log.say("p", "one ")
    log.checkpoint("p")
    log.say("p", "two")
    follower, picture = followed(log)
    follower.take(log.told)
    log.load(follower)
    follower.stored_text(Text(message=MESSAGE, part="p", text="one "))
    drain(follower, picture)
    assert picture.texts == {"p": "one two"}


def test_fragments_of_a_part_that_ended_are_ignored():
    log = Log()
    log.start("p")
    log.say("p", "one")
    log.end("p")
    follower, picture = followed(log)
    follower.take([*log.told, delta("p", 3, "late")])
    drain(follower, picture)
    assert picture.texts == {"p": "one"}


def test_a_fragment_of_a_part_that_ended_long_ago_asks_once_and_is_then_ignored():
    log = Log()
    log.start("p")
    log.say("p", "one")
    log.end("p")
    follower, picture = followed(log, after=2)
    follower.take([delta("p", 0, "one")])
    assert lacks_events(follower)
    log.load(follower)
    assert not lacks_events(follower)
    follower.take([delta("p", 0, "one")])
    assert not lacks_events(follower)
    drain(follower, picture)
    assert picture.kinds == []


def test_a_fragment_before_its_part_waits_for_it():
    log = Log()
    log.start("p")
    log.say("p", "one")
    follower, picture = Follower(after=0), Picture()
    follower.take(reversed(log.told))
    drain(follower, picture)
    assert picture.texts == {"p": "one"}


def test_events_wait_for_the_one_before_them():
    log = Log()
    for _ in range(4):
        log.append("prompt.admitted")
    follower, picture = Follower(after=0), Picture()
    follower.take([log.told[2], log.told[3], log.told[0]])
    drain(follower, picture)
    assert picture.seq == 1
    assert lacks_events(follower)
    follower.take([log.told[1], log.told[1]])
    drain(follower, picture)
    assert picture.seq == 4
    assert not lacks_events(follower)


def test_a_hint_makes_the_reader_load():
    log = Log()
    log.append("text.ended", "p", text="x" * 100)
    follower, picture = Follower(after=0), Picture()
    follower.take([["hint", 1]])
    assert lacks_events(follower)
    log.load(follower)
    drain(follower, picture)
    assert picture.seq == 1


def test_what_is_held_is_bounded_and_the_checkpoint_still_heals():
    log = Log()
    log.start("p")
    follower, picture = followed(log)
    log.say("p", "lost")
    for _ in range(MOST_HELD_CHARACTERS // 1000 + 50):
        log.say("p", "x" * 1000)
    follower.take(log.told[2:])
    assert follower._held_characters <= MOST_HELD_CHARACTERS
    assert follower.gaps() == {"p": 0}
    follower.stored_text(Text(message=MESSAGE, part="p", text=log.texts["p"]))
    drain(follower, picture)
    assert picture.texts == log.texts
    assert not follower.gaps()
    assert follower._held_characters == 0


@pytest.mark.parametrize(
    "item",
    [[], ["event"], ["event", "1"], ["delta", 1, 2, 3, 4], ["what"], None, 5, {"a": 1}, ["hint", None]],
)
def test_an_item_that_is_none_of_ours_is_ignored(item: Any):
    follower = Follower(after=0)
    follower.take([item])
    assert follower.take_frames() == []
    assert not lacks_events(follower)


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**32), after=st.integers(0, 6), joins_at=st.integers(0, 20))
def test_any_loss_repeat_and_reordering_shows_a_prefix_and_ends_with_the_stored_text(
    seed: int, after: int, joins_at: int
):
    chance = random.Random(seed)
    log = Log()
    for _ in range(joins_at):
        _write_something(log, chance)
    follower, picture = followed(log, after=min(after, len(log.events)))
    picture.texts = dict.fromkeys(log.texts, "") | picture.texts
    for _ in range(60):
        _write_something(log, chance)
        _tell_something(log, follower, chance)
        drain(follower, picture)
        assert all(log.texts[part].startswith(text) for part, text in picture.texts.items())
    for part in list(log.checkpoints):
        log.end(part)
    log.load(follower)
    drain(follower, picture)
    assert picture.seq == len(log.events)
    assert picture.ended == {part: log.texts[part] for part in picture.ended}
    assert not follower.gaps()
    assert not lacks_events(follower)


def _tell_something(log: Log, follower: Follower, chance: random.Random) -> None:
    """Any message of the past, or none; some come again; now and then the database is looked at."""
    for _ in range(chance.randrange(4)):
        if log.told:
            item = chance.choice(log.told)
            follower.take([item])
            if chance.random() < 0.7:
                log.told.remove(item)
    if chance.random() < 0.2:
        log.load(follower)


def _write_something(log: Log, chance: random.Random) -> None:
    act = chance.randrange(6)
    if act == 0 and len(log.checkpoints) < 3:
        log.start(f"p{len(log.texts)}")
    elif act == 1:
        log.append("prompt.admitted")
    elif log.checkpoints:
        part = chance.choice(list(log.checkpoints))
        if act == 2:
            log.checkpoint(part)
        elif act == 3 and chance.random() < 0.3:
            log.end(part)
        else:
            log.say(part, chance.choice(["a", "bc ", "😀", "déf", "x" * 20]))
