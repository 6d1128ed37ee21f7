"""Where a conversation with the scripted demo stands, and what it says next. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from schema.turns import AssistantTurn, ResultTurn, TextBlock, Turn, UserTurn
from sessions_app.providers.demo import script
from sessions_app.providers.demo.script import Script

OPENING: Final = "Scripted demo: "

_WORD: Final = re.compile(r"\s*\S+")


@dataclass(frozen=True, kw_only=True)
class Scene:
    """The script of the step at hand, how much of it was said, and the attempts already made for it."""

    script: Script
    said: int
    """Words of the answer that earlier, interrupted attempts of this step already gave."""
    attempts_before: int

    def words(self) -> Iterator[str]:
        """What is left to say, each word with the space before it; the first one without."""
        for index, word in enumerate(islice(_words(self.script), self.said, None)):
            yield word.lstrip() if index == 0 else word


def stage(*, turns: tuple[Turn, ...], earlier_attempts: int) -> Scene:
    """Read the newest user message and what followed it: tool rounds, and words already given."""
    message, later = _since_newest_message(turns)
    current = script.parse(message)
    attempts_before = earlier_attempts
    round_ = _Round()
    for turn in later:
        if isinstance(turn, ResultTurn):
            round_.results.append(turn)
            continue
        if round_.results:
            attempts_before -= _attempts_of(current)
            current = _after_results(current, round_.results)
            round_ = _Round()
        if isinstance(turn, AssistantTurn):
            round_.said += _words_in(turn)
    if round_.results:
        attempts_before -= _attempts_of(current)
        current = _after_results(current, round_.results)
        round_ = _Round()
    return Scene(script=current, said=round_.said, attempts_before=max(0, attempts_before))


@dataclass
class _Round:
    """One step of a tool loop while it is read."""

    said: int = 0
    results: list[ResultTurn] = field(default_factory=list)


def _since_newest_message(turns: tuple[Turn, ...]) -> tuple[str, tuple[Turn, ...]]:
    for index in range(len(turns) - 1, -1, -1):
        turn = turns[index]
        if isinstance(turn, UserTurn) and turn.origin == "user":
            return turn.text, turns[index + 1 :]
    return "", turns


def _attempts_of(current: Script) -> int:
    """How many attempts a step took that made its calls in the end."""
    failure = current.failure
    return 1 + (0 if failure is None or failure.count is None else failure.count)


def _after_results(current: Script, results: list[ResultTurn]) -> Script:
    if current.then is not None:
        return script.parse(current.then)
    lines = "\n".join(_line(result) for result in results)
    return Script(text=lines, delay=current.delay)


def _line(result: ResultTurn) -> str:
    verb = "failed" if result.failed else "returned"
    return f"{result.name} {verb}: {' '.join(result.output.split())}"


def _words_in(turn: AssistantTurn) -> int:
    return sum(len(_WORD.findall(block.text)) for block in turn.blocks if isinstance(block, TextBlock))


def _words(current: Script) -> Iterator[str]:
    if current.words is not None:
        for number in range(1, current.words + 1):
            yield str(number) if number == 1 else f" {number}"
        return
    if not current.text and current.calls:
        return
    for found in _WORD.finditer(OPENING + (current.text or "nothing was asked.")):
        yield found[0]


def split(text: str) -> Iterator[str]:
    """The words of a text, each with the space before it."""
    for found in _WORD.finditer(text):
        yield found[0]
