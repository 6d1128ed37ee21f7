"""manage.py recover_sessions, as contract section 1 promises it."""

import io
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connections
from django.utils import timezone

from recovery import recover, recovery_pass
from recovery.models import RecoveryClaim
from sessions_app import ownership, sessions
from sessions_app.log import replay
from sessions_app.models import Figure, ProviderAttempt, SessionInput, Worker
from tests.recovery.losses import Lost
from tests.support import racing, world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

KEYS = [
    *("found", "claimed", "lost", "alive", "undetermined"),
    *("continued", "resumed", "held", "failed", "sessions"),
]


@pytest.fixture(autouse=True)
def short_times(settings: Any, tmp_path: Any) -> None:
    settings.HOLDFAST_RUN_DIR = tmp_path / "run"
    settings.HOLDFAST_HEARTBEAT_SECONDS = 0.05
    settings.HOLDFAST_LEASE_SECONDS = 0.2


def run(*options: str) -> tuple[int, str, str]:
    """Exit code, output and errors."""
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("recover_sessions", *options, stdout=out, stderr=err)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def told(*options: str) -> tuple[int, dict[str, Any]]:
    code, out, _ = run("--json", *options)
    return code, json.loads(out)


def counts(report: dict[str, Any]) -> dict[str, int]:
    """The counters that are not zero."""
    return {key: report[key] for key in (*KEYS[:-1], "woken") if report[key]}


def died(**arguments: Any) -> Lost:
    """A session that was streaming when its owner's death was proved."""
    lost = Lost(**arguments).streaming().text()
    Worker.objects.filter(pk=lost.owner).update(dead_at=world.NOW, death="proved")
    return lost


def whole_database() -> dict[str, Any]:
    """All rows but the operators' figures: what this process counted before is stored by whoever looks next."""
    return {model.__name__: world.rows_of(model) for model in apps.get_models() if model is not Figure}


def corrupt(lost: Lost) -> None:
    """What its step left cannot be read."""
    lost.completed()
    ProviderAttempt.objects.filter(pk=lost.attempt).update(usage={"nobody": "knows"})


class Beating:
    """A worker that renews its heartbeat as long as the block runs."""

    def __init__(self, run_dir: Any) -> None:
        self.me = ownership.register(kind="worker", run_dir=run_dir, lease_seconds=0.2, now=timezone.now())
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._beat)

    def __enter__(self) -> str:
        self._thread.start()
        return self.me.worker_id

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self.me.stop(now=timezone.now())

    def _beat(self) -> None:
        while not self._end.wait(0.02):
            self.me.renew(now=timezone.now())
        connections.close_all()


@pytest.fixture
def beating(settings: Any) -> Iterator[str]:
    with Beating(settings.HOLDFAST_RUN_DIR) as worker_id:
        yield worker_id


def test_with_nothing_to_do_it_says_so_at_once() -> None:
    world.session()

    code, out, err = run()

    assert (code, err) == (0, "")
    assert out.startswith("0 of 0 orphans recovered")


def test_the_object_has_the_keys_of_the_contract_and_one_claim_per_session() -> None:
    lost = died(user_id=world.user("ann"))

    code, report = told()

    assert code == 0
    assert [key for key in report if key in KEYS] == KEYS
    assert counts(report) == {"found": 1, "claimed": 1, "continued": 1}
    claim = RecoveryClaim.objects.get()
    (row,) = report["sessions"]
    assert (row["id"], row["session"], row["outcome"]) == (claim.pk, lost.id, "continued")
    assert row["found"] == {"attempts": 1, "tools": 0, "parts": 1}
    assert row["continuation"] == claim.continuation
    assert row["created_at"].endswith("Z")
    assert world.wakes() == [lost.id]
    assert replay.rebuild(lost.id, check=True) == []


def test_the_table_names_each_session_and_what_became_of_it() -> None:
    lost = died()

    code, out, err = run()

    head, row, summary = out.splitlines()
    assert (code, err) == (0, "")
    assert head.split() == ["SESSION", "OUTCOME", "DEATH", "ATTEMPTS", "TOOLS", "PARTS", "CONTINUATION"]
    continuation = RecoveryClaim.objects.get().continuation
    assert row.split() == [lost.id, "continued", "proved", "1", "0", "1", continuation]
    assert row.index("continued") == head.index("OUTCOME")
    assert summary.startswith("1 of 1 orphans recovered: 1 continued, 0 resumed, 0 held; 0 failed")


def test_a_second_pass_finds_nothing_and_changes_no_session() -> None:
    lost = died()
    run()
    before = world.everything_of(lost.id)

    code, report = told()

    assert (code, counts(report)) == (0, {})
    assert world.everything_of(lost.id) == before


def test_a_lost_wake_is_told_as_woken() -> None:
    session_id = world.session()
    world.prompt(session_id)
    world.forget_wakes(session_id)

    assert counts(told("--dry-run")[1]) == {"woken": 1}
    assert world.wakes() == []
    assert counts(told()[1]) == {"woken": 1}
    assert world.wakes() == [session_id]


def test_what_now_needs_a_decision_is_exit_code_3() -> None:
    lost = died()

    code, report = told("--policy", "ask")

    assert (code, counts(report)) == (3, {"found": 1, "claimed": 1, "held": 1})
    assert sessions.get_status(lost.id, now=world.NOW).state == "needs_decision"
    # Only what this pass left to people counts.
    assert told()[0] == 0


@pytest.mark.parametrize(
    ("policy", "outcome", "code"), [("continue", "continued", 0), ("ask", "held", 3), ("off", "closed", 0)]
)
def test_the_policy_of_the_pass_comes_before_that_of_the_session(
    policy: str, outcome: str, code: int
) -> None:
    lost = died(recovery_policy="off" if policy != "off" else "continue")

    assert told("--policy", policy)[0] == code

    assert RecoveryClaim.objects.get(session_id=lost.id).outcome == outcome
    assert world.row(lost.id).recovery_policy == ("off" if policy != "off" else "continue")


def test_a_parked_session_needs_a_decision(settings: Any) -> None:
    lost = died()
    world.change(lost.id, recovery_count=settings.HOLDFAST_RECOVERY_BUDGET)

    code, report = told()

    assert (code, counts(report)) == (3, {"found": 1, "claimed": 1, "held": 1})
    assert report["sessions"][0]["outcome"] == "parked"
    assert world.row(lost.id).parked


def test_a_stop_that_was_never_served_needs_no_decision() -> None:
    lost = Lost().prepared()
    sessions.interrupt(session_id=lost.id, now=world.NOW)
    Worker.objects.filter(pk=lost.owner).update(dead_at=world.NOW, death="proved")

    code, report = told()

    assert (code, counts(report)) == (0, {"found": 1, "claimed": 1, "held": 1})


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.rows_of_its_own
def test_a_session_that_cannot_be_recovered_is_named_and_the_others_are(asked: bool) -> None:
    broken, other = died(), died(recovery_policy="ask" if asked else None)
    corrupt(broken)
    before = RecoveryClaim.objects.count()

    code, out, _ = run()

    assert code == 1
    assert f"FAILED {broken.id}: " in out
    assert list(RecoveryClaim.objects.values_list("session_id", flat=True)) == [other.id]
    assert before == 0
    again, report = told()
    assert (again, report["failed"]) == (1, 1)
    assert [failure["session"] for failure in report["failures"]] == [broken.id]


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
@pytest.mark.rows_of_its_own
def test_one_that_was_parked_since_it_could_not_be_recovered_is_named_ever_after(
    options: tuple[str, ...],
) -> None:
    broken, parked = died(), died()
    corrupt(broken)
    world.change(broken.id, recovery_count=99)
    world.change(parked.id, recovery_count=99)
    assert run()[0] == 1
    assert broken.row.parked

    code, out, _ = run(*options)

    assert code == 1
    assert f"FAILED {broken.id}: It is parked" in out
    assert parked.id not in out
    assert run("--session", parked.id)[0] == 0


@pytest.mark.rows_of_its_own
def test_one_that_fails_before_and_after_the_wait_counts_once() -> None:
    broken = died()
    corrupt(broken)
    Lost()

    _, report = told()

    assert counts(report) == {"found": 2, "claimed": 1, "resumed": 1, "failed": 1}


def test_a_dry_run_tells_what_would_be_done_and_writes_nothing() -> None:
    lost = died()
    parked = died()
    world.change(parked.id, recovery_count=1000)
    Lost()
    before = whole_database()

    code, report = told("--dry-run")
    code_of_table, out, _ = run("--dry-run")

    assert whole_database() == before
    assert (code, code_of_table) == (0, 0)
    assert report["dry_run"]
    assert counts(report) == {"found": 2, "continued": 1, "held": 1, "undetermined": 1}
    assert {row["session"]: row["outcome"] for row in report["sessions"]} == {
        lost.id: "continued", parked.id: "parked",
    }  # fmt: skip
    assert {row["id"] for row in report["sessions"]} == {None}
    assert "2 of 2 orphans would be recovered" in out


def test_a_dry_run_sees_a_death_that_only_a_lock_proves_and_does_not_establish_it(settings: Any) -> None:
    dead = ownership.register(
        kind="worker", run_dir=settings.HOLDFAST_RUN_DIR, lease_seconds=1, now=world.NOW
    )
    lost = Lost(owner=dead.worker_id).streaming()
    dead.lock._close_copy()
    before = whole_database()

    assert counts(told("--dry-run")[1]) == {"found": 1, "continued": 1}
    assert whole_database() == before
    assert counts(told("--no-wait")[1]) == {"found": 1, "claimed": 1, "continued": 1}
    assert RecoveryClaim.objects.get(session_id=lost.id).death == "proved"


def test_only_the_sessions_that_are_named_are_touched() -> None:
    first, second, left = died(), died(), died()
    idle = world.session()
    world.prompt(idle)
    world.forget_wakes(idle)
    before = world.everything_of(left.id)

    code, report = told("--session", first.id, "--session", second.id)

    assert code == 0
    assert counts(report) == {"found": 2, "claimed": 2, "continued": 2}
    assert world.everything_of(left.id) == before
    assert world.row(idle).wake_enqueued_at is None


def test_an_unknown_session_is_refused_before_anything_is_done() -> None:
    lost = died()
    before = whole_database()

    with pytest.raises(CommandError, match="no session 'ses_unknown', 'ses_other'"):
        run("--session", lost.id, "--session", "ses_unknown", "--session", "ses_other")

    assert whole_database() == before


def test_a_run_directory_that_cannot_be_used_is_told_in_one_line(settings: Any, tmp_path: Any) -> None:
    (tmp_path / "file").write_text("")
    settings.HOLDFAST_RUN_DIR = tmp_path / "file"

    with pytest.raises(CommandError, match="Nothing more could be recovered: "):
        run()


def test_without_waiting_an_owner_that_may_live_is_undetermined() -> None:
    lost = Lost().streaming()
    before = world.everything_of(lost.id)

    code, report = told("--no-wait")

    assert (code, counts(report)) == (0, {"undetermined": 1})
    assert world.everything_of(lost.id) == before


def test_an_owner_whose_counter_stands_still_for_a_lease_is_assumed_dead() -> None:
    lost = Lost().streaming()

    code, out, err = run("--json")

    assert counts(json.loads(out)) == {"found": 1, "claimed": 1, "continued": 1}
    assert err == "waiting up to 0.25 s for workers whose death is not determined\n"
    assert RecoveryClaim.objects.get(session_id=lost.id).death == "assumed"
    assert code == 0


@pytest.mark.django_db(transaction=True)
def test_an_owner_whose_counter_moves_is_alive_and_keeps_its_session(beating: str) -> None:
    lost = Lost(owner=beating).streaming()

    code, report = told()

    assert (code, counts(report)) == (0, {"alive": 1})
    row = world.row(lost.id)
    assert (row.owner_id, row.fence, row.recovery_count) == (beating, lost.held.fence, 0)


def test_the_wait_is_over_as_soon_as_every_owner_is_known_to_live(settings: Any) -> None:
    settings.HOLDFAST_LEASE_SECONDS = 1000
    slept: list[float] = []
    owner = world.worker()
    Lost(owner=owner.pk).streaming()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            Worker.objects.filter(pk=owner.pk).update(heartbeat_count=1)
        assert len(slept) < 10

    report = recovery_pass.run(recovery_pass.Pass(sleep=sleep))

    assert (report.alive, report.undetermined) == (1, 0)
    assert slept == [0.05] * 3


def test_nobody_is_waited_for_when_the_named_session_needs_no_wait(settings: Any) -> None:
    settings.HOLDFAST_LEASE_SECONDS = 1000
    lost = died()
    Lost().streaming()

    assert counts(told("--session", lost.id)[1]) == {"found": 1, "claimed": 1, "continued": 1}


def test_the_pass_is_a_worker_of_its_own_that_stops_with_it(settings: Any) -> None:
    lost = died()

    told()

    me = Worker.objects.get(kind="command")
    assert me.stopped_at is not None
    assert RecoveryClaim.objects.get(session_id=lost.id).worker == me.pk
    assert list(settings.HOLDFAST_RUN_DIR.iterdir()) == []


def test_long_work_is_told_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery_pass, "PROGRESS_EVERY", 2)
    for _ in range(5):
        died()

    _, out, err = run("--json")

    assert err.splitlines() == ["2 orphans looked at, 2 recovered", "4 orphans looked at, 4 recovered"]
    assert json.loads(out)["claimed"] == 5


@pytest.mark.django_db(transaction=True)
def test_passes_at_once_claim_each_session_once() -> None:
    lost = [died() for _ in range(6)]

    reports = racing.together([lambda: told("--no-wait") for _ in range(3)])

    assert [code for code, _ in reports] == [0, 0, 0]
    assert sum(report["claimed"] for _, report in reports) == 6
    assert RecoveryClaim.objects.count() == 6
    for each in lost:
        assert SessionInput.objects.filter(session_id=each.id, origin="recovery").count() == 1
        assert world.row(each.id).recovery_count == 1
        assert replay.rebuild(each.id, check=True) == []
    assert sorted(world.wakes()) == sorted(each.id for each in lost)


def test_one_that_another_pass_is_recovering_is_taken_by_others() -> None:
    lost = died()
    world.change(lost.id, recovering=world.worker())

    code, report = told("--no-wait")

    assert (code, counts(report)) == (0, {"found": 1, "lost": 1})
    assert not RecoveryClaim.objects.exists()


def test_a_pass_that_dies_in_the_middle_leaves_the_rest_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = died(), died()
    calls = []
    whole = recover._claim

    def dies(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return whole(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(recover, "_claim", dies)
        with pytest.raises(KeyboardInterrupt):
            run()

    assert RecoveryClaim.objects.count() == 1
    assert counts(told()[1]) == {"found": 1, "claimed": 1, "continued": 1}
    assert {claim.session_id for claim in RecoveryClaim.objects.all()} == {first.id, second.id}
