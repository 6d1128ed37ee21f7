"""The language of the scripted demo: directives in a message, read into a script."""

import json
import re
from dataclasses import dataclass, replace
from typing import Final, Literal, cast, get_args

FailureName = Literal["not_sent", "rejected", "rate_limit", "failed", "ambiguous", "partial", "overflow"]
FAILURE_NAMES: Final[tuple[FailureName, ...]] = get_args(FailureName)

MAX_NESTING: Final = 16
MAX_BRACKETS: Final = 100_000
"""How many brackets one message may cost. Directives that nobody closes would otherwise be searched
again from every opening; beyond the bound the rest of the message is plain text."""


@dataclass(frozen=True, kw_only=True)
class ScriptedCall:
    """A call to make. The arguments stay as they were written, also when they are no valid JSON."""

    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True)
class ScriptedFailure:
    """How the first ``count`` attempts end; None stands for all of them."""

    name: FailureName
    count: int | None = None

    def strikes(self, *, attempts_before: int) -> bool:
        return self.count is None or attempts_before < self.count


@dataclass(frozen=True, kw_only=True)
class Script:
    """What one message asks of the demo."""

    text: str = ""
    words: int | None = None
    delay: float = 0.0
    """Seconds before each word."""
    reason: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    then: str | None = None
    failure: ScriptedFailure | None = None
    hang: bool = False


def parse(message: str) -> Script:
    """The script of a message. What only looks like a directive stays part of the text."""
    return _Parser(message).script()


_BRACKET: Final = re.compile(r"[\[\]]")
_WORDS: Final = re.compile(r"\[\[words\s+0*([1-9]\d{0,5})\s*\]\]")
_DELAY: Final = re.compile(r"\[\[delay\s+(\d{1,6})\s*\]\]")
_HANG: Final = re.compile(r"\[\[hang\s*\]\]")
_ERROR: Final = re.compile(rf"\[\[error\s+({'|'.join(FAILURE_NAMES)})(?:\s+(\d{{1,6}}))?\s*\]\]")
_PROSE: Final = re.compile(r"\[\[(then|reason)\s+")
_TOOL: Final = re.compile(r"\[\[tool\s+([A-Za-z_][A-Za-z0-9_.-]{0,63})(?=[\s\]{])\s*")
_END: Final = re.compile(r"\s*\]\]")


@dataclass(frozen=True, kw_only=True)
class _Directive:
    end: int
    words: int | None = None
    delay: float | None = None
    reason: str | None = None
    call: ScriptedCall | None = None
    then: str | None = None
    failure: ScriptedFailure | None = None
    hang: bool = False

    def applied_to(self, script: Script) -> Script:
        """Calls add up; of everything else the last one written counts."""
        return replace(
            script,
            words=script.words if self.words is None else self.words,
            delay=script.delay if self.delay is None else self.delay,
            reason=script.reason if self.reason is None else self.reason,
            calls=script.calls if self.call is None else (*script.calls, self.call),
            then=script.then if self.then is None else self.then,
            failure=script.failure if self.failure is None else self.failure,
            hang=script.hang or self.hang,
        )


class _Parser:
    def __init__(self, message: str) -> None:
        self._message = message
        self._known: dict[int, _Directive | None] = {}
        self._brackets_left = MAX_BRACKETS

    def script(self) -> Script:
        script = Script()
        text = ""
        position = 0
        while (opening := self._message.find("[[", position)) >= 0:
            directive = self._directive(opening, nesting=0)
            if directive is None:
                text += self._message[position : opening + 1]
                position = opening + 1
                continue
            text += self._message[position:opening]
            position = directive.end
            if not text or text[-1].isspace():
                position += _blanks(self._message, position)
            script = directive.applied_to(script)
        return replace(script, text=(text + self._message[position:]).strip())

    def _directive(self, opening: int, *, nesting: int) -> _Directive | None:
        if opening not in self._known:
            self._known[opening] = self._read(opening, nesting=nesting)
        return self._known[opening]

    def _read(self, opening: int, *, nesting: int) -> _Directive | None:
        if found := _WORDS.match(self._message, opening):
            return _Directive(end=found.end(), words=int(found[1]))
        if found := _DELAY.match(self._message, opening):
            return _Directive(end=found.end(), delay=int(found[1]) / 1000)
        if found := _HANG.match(self._message, opening):
            return _Directive(end=found.end(), hang=True)
        if found := _ERROR.match(self._message, opening):
            return _Directive(end=found.end(), failure=_failure(found))
        if found := _PROSE.match(self._message, opening):
            return self._prose(found, nesting=nesting)
        if found := _TOOL.match(self._message, opening):
            return self._tool(found, nesting=nesting)
        return None

    def _prose(self, found: re.Match[str], *, nesting: int) -> _Directive | None:
        close = self._closing(found.end(), nesting=nesting)
        if close is None:
            return None
        text = self._message[found.end() : close].strip()
        if found[1] == "then":
            return _Directive(end=close + 2, then=text)
        return _Directive(end=close + 2, reason=text)

    def _tool(self, found: re.Match[str], *, nesting: int) -> _Directive | None:
        start = found.end()
        end_of_json = _end_of_json(self._message, start)
        closing = _END.match(self._message, end_of_json)
        if closing is None:
            close = self._closing(start, nesting=nesting)
            if close is None:
                return None
            arguments, end = self._message[start:close].strip(), close + 2
        else:
            arguments, end = self._message[start:end_of_json], closing.end()
        return _Directive(end=end, call=ScriptedCall(name=found[1], arguments=arguments or "{}"))

    def _closing(self, position: int, *, nesting: int) -> int | None:
        """Where the ``]]`` is that closes a directive, past balanced brackets and inner directives."""
        open_brackets = 0
        while (found := _BRACKET.search(self._message, position)) and self._brackets_left > 0:
            self._brackets_left -= 1
            position = found.end()
            if found[0] == "[":
                inner = self._inner(found.start(), nesting=nesting)
                if inner is None:
                    open_brackets += 1
                else:
                    position = inner.end
            elif open_brackets:
                open_brackets -= 1
            elif self._message.startswith("]]", found.start()):
                return found.start()
        return None

    def _inner(self, opening: int, *, nesting: int) -> _Directive | None:
        if nesting >= MAX_NESTING or not self._message.startswith("[[", opening):
            return None
        return self._directive(opening, nesting=nesting + 1)


def _failure(found: re.Match[str]) -> ScriptedFailure:
    count = None if found[2] is None else int(found[2])
    return ScriptedFailure(name=cast("FailureName", found[1]), count=count)


def _blanks(message: str, position: int) -> int:
    rest = message[position : position + 1]
    return 1 if rest in (" ", "\t") else 0


_decoder: Final = json.JSONDecoder()


def _end_of_json(message: str, start: int) -> int:
    """Where the JSON object that starts here ends; ``start`` itself if there is none."""
    if not message.startswith("{", start):
        return start
    try:
        _, end = _decoder.raw_decode(message, start)
    except (ValueError, RecursionError):
        return start
    return end
