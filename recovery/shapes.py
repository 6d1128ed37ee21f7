"""The shape of contract section 3, Claim."""

from typing import Any

from recovery.models import RecoveryClaim
from sessions_app.sessions import shapes


def claim_shape(claim: RecoveryClaim) -> dict[str, Any]:
    """A claim that is only foreseen has no id."""
    return {
        "id": claim.pk or None,
        "session": claim.session_id,
        "boundary_seq": claim.boundary_seq,
        "lost_fence": claim.lost_fence,
        "lost_owner": claim.lost_owner or None,
        "worker": claim.worker or None,
        "death": claim.death or None,
        "outcome": claim.outcome,
        "found": claim.found,
        "continuation": claim.continuation or None,
        "created_at": shapes.rfc3339(claim.created_at),
    }
