"""What a function's docstring says of it and of its arguments."""

import inspect
import itertools
import re
from dataclasses import dataclass
from typing import Final

_SECTION: Final = re.compile(r"(Args|Arguments|Returns|Raises|Yields|Examples?|Notes?):\s*\Z")
_ARGUMENT: Final = re.compile(r"(?P<indent>\s+)\*{0,2}(?P<name>\w+)(\s*\([^)]*\))?:\s*(?P<text>.*)\Z")


@dataclass(frozen=True, kw_only=True)
class Described:
    text: str
    arguments: dict[str, str]


def read(docstring: str | None) -> Described:
    """The text before the first section, and the entries of the section ``Args:``."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    heads = [number for number, line in enumerate(lines) if _SECTION.match(line)]
    text = "\n".join(lines[: heads[0]] if heads else lines).strip()
    arguments: dict[str, str] = {}
    for head, end in itertools.pairwise([*heads, len(lines)]):
        if lines[head].startswith("Arg"):
            arguments = _arguments(lines[head + 1 : end])
    return Described(text=text, arguments=arguments)


def _arguments(lines: list[str]) -> dict[str, str]:
    """Entries ``name: text``; lines that are indented deeper than their entry belong to it."""
    found: dict[str, list[str]] = {}
    indent = ""
    texts: list[str] = []
    for line in lines:
        entry = _ARGUMENT.match(line)
        if entry and (not indent or entry["indent"] == indent):
            indent = entry["indent"]
            texts = found[entry["name"]] = [entry["text"]]
        else:
            texts.append(line.strip())
    return {name: " ".join(part for part in parts if part) for name, parts in found.items()}
