"""What processes of a race do: get ready, wait for the word, recover what they find, say what came of it."""

import json
import sys
from collections import Counter

from django.conf import settings
from django.utils import timezone

from recovery import service
from sessions_app import ownership


def recover_all() -> None:
    """Tell "ready", wait for a line, recover everything as a worker of its own, tell the outcomes."""
    me = ownership.register(
        kind="worker", run_dir=settings.HOLDFAST_RUN_DIR, lease_seconds=20, now=timezone.now()
    )
    print("ready", flush=True)
    sys.stdin.readline()
    outcomes = Counter(
        each.outcome for each in service.recover_all(worker_id=me.worker_id, now=timezone.now())
    )
    me.stop(now=timezone.now())
    print(json.dumps(outcomes), flush=True)
