"""What one pass found and did: as the JSON object of contract section 1, and as a table."""

from dataclasses import dataclass, field
from typing import Any, Final

from recovery.models import RecoveryClaim
from recovery.recover import Recovered
from recovery.shapes import claim_shape
from sessions_app import ownership

HEADINGS: Final = ("SESSION", "OUTCOME", "DEATH", "ATTEMPTS", "TOOLS", "PARTS", "CONTINUATION")
_GAP: Final = "  "
_OUTCOMES: Final = {
    "continued": ("continued",),
    "resumed": ("resumed",),
    "held": ("held", "parked"),
}


@dataclass(kw_only=True)
class Report:
    """Each session counts once, with what became of it last."""

    is_dry_run: bool = False
    alive: int = 0
    undetermined: int = 0
    woken: int = 0
    _found: dict[str, Recovered] = field(default_factory=dict)

    def add(self, recovered: Recovered) -> None:
        self._found[recovered.session_id] = recovered

    def foresee(self, claim: RecoveryClaim) -> None:
        """Add a claim that a pass would make."""
        self.add(Recovered(session_id=claim.session_id, outcome="claimed", claim=claim))

    @property
    def session_ids(self) -> set[str]:
        return set(self._found)

    @property
    def claims(self) -> list[RecoveryClaim]:
        return [each.claim for each in self._found.values() if each.claim is not None]

    @property
    def failures(self) -> list[dict[str, str]]:
        return [
            {"session": each.session_id, "detail": each.detail}
            for each in self._found.values()
            if each.outcome == "failed"
        ]

    @property
    def claimed(self) -> int:
        return 0 if self.is_dry_run else len(self.claims)

    def exit_code(self) -> int:
        """1 when a session could not be recovered, 3 when one now needs a decision, else 0."""
        if self.failures:
            return 1
        needs_decision = not self.is_dry_run and any(_needs_decision(claim) for claim in self.claims)
        return 3 if needs_decision else 0

    def to_json(self) -> dict[str, Any]:
        return {
            "found": len(self._found),
            "claimed": self.claimed,
            "lost": sum(each.outcome == "lost" for each in self._found.values()),
            "alive": self.alive,
            "undetermined": self.undetermined,
            **{name: self._count(*outcomes) for name, outcomes in _OUTCOMES.items()},
            "failed": len(self.failures),
            "sessions": [claim_shape(claim) for claim in self.claims],
            "woken": self.woken,
            "failures": self.failures,
            "dry_run": self.is_dry_run,
        }

    def to_table(self) -> str:
        rows = [HEADINGS, *(_cells(claim) for claim in self.claims)] if self.claims else []
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        lines += [f"FAILED {each['session']}: {each['detail']}" for each in self.failures]
        return "\n".join([*lines, self._summary()])

    def _count(self, *outcomes: str) -> int:
        return sum(claim.outcome in outcomes for claim in self.claims)

    def _summary(self) -> str:
        told = self.to_json()
        verb = "would be recovered" if self.is_dry_run else "recovered"
        return (
            f"{len(self.claims)} of {told['found']} orphans {verb}: {told['continued']} continued, "
            f"{told['resumed']} resumed, {told['held']} held; {told['failed']} failed, {told['lost']} taken "
            f"by others. {told['alive']} sessions have a living owner, {told['undetermined']} may have one. "
            f"{told['woken']} {'would be ' if self.is_dry_run else ''}woken."
        )


def _cells(claim: RecoveryClaim) -> tuple[str, ...]:
    counts = (str(claim.found.get(kind, 0)) for kind in ("attempts", "tools", "parts"))
    return (claim.session_id, claim.outcome, claim.death or "-", *counts, claim.continuation or "-")


def _needs_decision(claim: RecoveryClaim) -> bool:
    """A session that a Stop holds back needs none, unless something is unknown as well."""
    if claim.outcome == "parked":
        return True
    return claim.outcome == "held" and ownership.has_undecided(claim.session_id)
