"""What a pass of recovery costs among many sessions, and how many orphans a second it recovers.

    python -m bench.recovery [--database sqlite|postgresql]... [--sessions N] [--orphans N]

One process does what a sweep does: it looks, proves the owner dead, recovers each orphan, wakes it. A pass
that finds nothing is measured before and after.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Final

from bench import apart

SESSIONS: Final = 100_000
ORPHANS: Final = 1_000


def run(
    databases: tuple[str, ...] = ("sqlite", "postgresql"), *, sessions: int = SESSIONS, orphans: int = ORPHANS
) -> None:
    """See apart.run."""
    arguments = ("--sessions", str(sessions), "--orphans", str(orphans))
    apart.run("bench.recovery", databases=databases, arguments=arguments)


def inside(database: str, *, sessions: int, orphans: int) -> None:
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.core.management import call_command

    from tests.recovery import crowds

    call_command("migrate", verbosity=0)
    user = User.objects.create_user("bench")
    crowds.at_rest(sessions - orphans, user_id=user.pk)
    owner = crowds.killed_worker(Path(settings.HOLDFAST_RUN_DIR))
    crowds.analyze()
    empty = _pass()
    crowds.lost(orphans, user_id=user.pk, owner=owner.pk)
    crowds.analyze()
    full = _pass()
    again = _pass()
    assert (empty.recovered, full.recovered, again.recovered) == (0, orphans, 0)
    print(f"{database}: {sessions} sessions, {orphans} of them orphans")
    print(f"{'pass':>8}{'recovered':>11}{'seconds':>9}{'statements':>12}{'orphans/s':>11}")
    for name, figures in (("empty", empty), ("full", full), ("again", again)):
        print(f"{name:>8}{figures}")


class _Figures:
    def __init__(self, *, recovered: int, seconds: float, statements: int) -> None:
        self.recovered = recovered
        self.seconds = seconds
        self.statements = statements

    def __str__(self) -> str:
        rate = f"{self.recovered / self.seconds:.0f}" if self.recovered else "-"
        return f"{self.recovered:>11}{self.seconds:>9.3f}{self.statements:>12}{rate:>11}"


def _pass() -> _Figures:
    """One sweep by a worker of its own; the statements are counted, not kept."""
    from django.conf import settings
    from django.db import connection
    from django.utils import timezone

    from recovery import service
    from sessions_app import ownership

    me = ownership.register(
        kind="worker", run_dir=settings.HOLDFAST_RUN_DIR, lease_seconds=20, now=timezone.now()
    )
    statements = 0

    def count(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
        nonlocal statements
        statements += 1
        return execute(sql, params, many, context)

    begin = time.perf_counter()
    with connection.execute_wrapper(count):
        outcomes = [each.outcome for each in service.recover_all(worker_id=me.worker_id, now=timezone.now())]
    seconds = time.perf_counter() - begin
    me.stop(now=timezone.now())
    return _Figures(recovered=outcomes.count("claimed"), seconds=seconds, statements=statements)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", action="append", choices=("sqlite", "postgresql"))
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    parser.add_argument("--orphans", type=int, default=ORPHANS)
    parser.add_argument("--inside", choices=("sqlite", "postgresql"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        inside(given.inside, sessions=given.sessions, orphans=given.orphans)
    else:
        run(
            tuple(given.database or ("sqlite", "postgresql")),
            sessions=given.sessions,
            orphans=given.orphans,
        )
