"""A process: ``SESSION ID ACTION``, a decision as the services take it; one that comes too late changes nothing."""

import sys
from typing import Any

import django


def main(session: str, subject: str, action: str) -> None:
    django.setup()
    from django.utils import timezone

    from recovery import decisions
    from schema.problems import Problem
    from sessions_app import sessions

    said: dict[str, Any] = {"session_id": session, "action": action, "by": "ann", "now": timezone.now()}
    try:
        if subject.startswith("att_"):
            decisions.decide_attempt(attempt_id=subject, **said)
        elif action in ("approve", "deny"):
            sessions.answer_call(call_id=subject, **said)
        else:
            decisions.decide_call(call_id=subject, **said)
    except Problem as refused:
        print(refused.code)


if __name__ == "__main__":
    main(*sys.argv[1:])
