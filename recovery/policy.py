"""Which policy holds for a session: its own, its agent's, the site's."""

from dataclasses import dataclass

from recovery.plan import Policy
from sessions_app import agents
from sessions_app.models import Session


@dataclass(frozen=True, kw_only=True)
class Effective:
    policy: Policy
    continues_after_effects: bool


def effective(session: Session) -> Effective:
    """The policy that counts now."""
    agent = agents.find_agent(session.agent)
    return Effective(
        policy=agents.recovery_policy(session, agent.recovery_policy if agent else ""),
        continues_after_effects=agent is not None and agent.continues_after_effects,
    )
