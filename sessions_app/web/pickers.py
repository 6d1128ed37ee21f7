"""What a chat can be given: an agent, a model, and what follows an interruption."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from django.conf import settings

from sessions_app import sessions
from sessions_app.providers import registry

BY_DEFAULT: Final = "default"
"""Stands for the empty recovery policy, since a form cannot tell it from a field that is not there."""

TITLES: Final = {"agent": "Agent", "model": "Model", "recovery_policy": "After an interruption"}
POLICIES: Final = {
    BY_DEFAULT: "By default",
    "continue": "Continue",
    "ask": "Ask me",
    "off": "Stay stopped",
}
_MEANINGS: Final = {
    "continue": "The answer goes on by itself. What may have changed something outside is asked about first.",
    "ask": "An outcome that is not known waits for your decision.",
    "off": "Nothing goes on by itself. What is not known is shown.",
}
NO_KEY: Final = "No key is set for it here."


@dataclass(frozen=True, kw_only=True)
class Choice:
    value: str
    label: str
    detail: str
    is_chosen: bool
    is_usable: bool = True
    model: str = ""
    policy: str = ""
    """What an agent brings along."""
    shown: str = ""
    """What the header shows for it, if not the label."""


@dataclass(frozen=True, kw_only=True)
class Picker:
    """One thing to choose. ``others`` are the choices of the other pickers, which a form must not lose."""

    name: str
    title: str
    shown: str
    choices: Sequence[Choice]
    others: Sequence[tuple[str, str]] = ()
    is_open_ended: bool = False
    """What is not in the list can be written; the list itself comes when it is wanted."""

    @property
    def is_needed(self) -> bool:
        return len(self.choices) > 1 or self.is_open_ended


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """What a chat has, or a new one will have; empty means the default."""

    agent: str = ""
    model: str = ""
    recovery_policy: str = ""

    def items(self) -> list[tuple[str, str]]:
        pairs = (
            ("agent", self.agent),
            ("model", self.model),
            ("recovery_policy", self.recovery_policy),
        )
        return [(name, value) for name, value in pairs if value]


def pickers(chosen: Chosen, *, with_models: bool = False) -> list[Picker]:
    """The pickers of a chat. What is chosen and not in the lists is shown all the same.

    The models cost two statements more; scripts fetch them when somebody opens their picker.
    """
    agents = sessions.agents()
    agent = next((each for each in agents if each.name == chosen.agent), agents[0])
    model = chosen.model or agent.model
    by_default = _policy_of(agent)
    return [
        Picker(
            name="agent",
            title=TITLES["agent"],
            shown=chosen.agent or agent.name,
            choices=[
                Choice(
                    value=each.name,
                    label=each.name,
                    detail=each.model,
                    is_chosen=each.name == (chosen.agent or agent.name),
                    model=each.model,
                    policy=_policy_of(each),
                )
                for each in agents
            ],
            others=_without(chosen.items(), "agent"),
        ),
        Picker(
            name="model",
            title=TITLES["model"],
            shown=model,
            choices=_models(model) if with_models else [],
            others=_without(chosen.items(), "model"),
            is_open_ended=True,
        ),
        Picker(
            name="recovery_policy",
            title=TITLES["recovery_policy"],
            shown=POLICIES[chosen.recovery_policy] if chosen.recovery_policy else by_default,
            choices=_policies(chosen.recovery_policy, by_default=by_default),
            others=_without(chosen.items(), "recovery_policy"),
        ),
    ]


def _without(items: Iterable[tuple[str, str]], name: str) -> list[tuple[str, str]]:
    return [(each, value) for each, value in items if each != name]


def _models(current: str) -> list[Choice]:
    offered = registry.available()
    known = {info.name for info in offered}
    own = [] if current in known else [Choice(value=current, label=current, detail="", is_chosen=True)]
    return own + [
        Choice(
            value=info.name,
            label=info.label,
            detail=info.name if info.configured else NO_KEY,
            is_chosen=info.name == current,
            is_usable=info.configured,
        )
        for info in offered
    ]


def _policy_of(agent: sessions.AgentChoice) -> str:
    """In words, what follows an interruption by default."""
    return POLICIES[agent.recovery_policy or settings.HOLDFAST_RECOVERY_POLICY]


def _policies(current: str, *, by_default: str) -> list[Choice]:
    own = Choice(
        value=BY_DEFAULT,
        label=POLICIES[BY_DEFAULT],
        detail="What its agent says, or the site.",
        is_chosen=not current,
        shown=by_default,
    )
    return [own] + [
        Choice(value=value, label=POLICIES[value], detail=detail, is_chosen=value == current)
        for value, detail in _MEANINGS.items()
    ]
