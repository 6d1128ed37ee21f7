"""A process: tells what no address of the API tells, and whether the log and the tables agree."""

import json
from typing import Any

import django


def main() -> None:
    django.setup()
    from recovery.models import RecoveryClaim
    from sessions_app.log import replay
    from sessions_app.models import PartCheckpoint, Session, SessionInput

    ids = list(Session.objects.values_list("pk", flat=True))
    columns = ("id", "session_id", "boundary_seq", "lost_fence", "outcome", "continuation")
    told: dict[str, Any] = {
        "differences": [f"{pk}: {each}" for pk in ids for each in replay.rebuild(pk, check=True)],
        "claims": list(RecoveryClaim.objects.values(*columns)),
        "owned": list(Session.objects.exclude(owner=None).values_list("pk", flat=True)),
        "checkpoints": PartCheckpoint.objects.filter(part__ended_at__isnull=False).count(),
        "recovery_counts": dict(Session.objects.values_list("pk", "recovery_count")),
        "orphan_inputs": SessionInput.objects.exclude(session_id__in=ids).count(),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
