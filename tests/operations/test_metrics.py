"""/metrics: who may ask, what it tells, and what it costs."""

import re

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from sessions_app import access, figures, sessions
from sessions_app.figures import tally
from sessions_app.models import Figure, Worker
from sessions_app.operations import states
from tests.recovery import losses
from tests.sessions.test_delete import plan_of
from tests.support import world

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

METRICS_TOKEN = "a-token-for-the-scraper"


@pytest.fixture(autouse=True)
def nothing_counted_yet(db: None) -> None:
    tally.take()


def person(*, is_staff: bool) -> User:
    user = User.objects.get(pk=world.user())
    user.is_staff = is_staff
    user.save()
    return user


def token_of(user: User) -> str:
    return access.create_token(user_id=user.pk, name="", now=timezone.now()).secret


def status_with(authorization: str) -> int:
    return Client().get("/metrics", headers={"Authorization": authorization}).status_code


def scraped() -> dict[str, float]:
    """Every sample, by its name and labels as Prometheus writes them."""
    response = Client().get("/metrics", headers={"Authorization": f"Token {token_of(person(is_staff=True))}"})
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/plain; version=")
    families = text_string_to_metric_families(response.content.decode())
    return {
        sample.name
        + "".join(f" {name}={value}" for name, value in sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


@pytest.mark.parametrize(("is_staff", "status"), [(True, 200), (False, 403)])
def test_staff_may_ask_with_a_token_or_signed_in_and_others_may_not(is_staff: bool, status: int) -> None:
    user = person(is_staff=is_staff)
    browser = Client()
    browser.force_login(user)

    assert status_with(f"Token {token_of(user)}") == status
    assert status_with(f"Bearer {token_of(user)}") == status
    assert browser.get("/metrics").status_code == status


def test_whoever_has_the_scrapers_token_may_ask_and_it_opens_nothing_else(settings) -> None:
    assert status_with(f"Bearer {METRICS_TOKEN}") == 401

    settings.HOLDFAST_METRICS_TOKEN = METRICS_TOKEN

    assert status_with(f"Bearer {METRICS_TOKEN}") == 200
    assert status_with("Bearer another") == 401
    assert status_with("Bearer") == 401
    answer = Client().get("/api/v1/me", headers={"Authorization": f"Token {METRICS_TOKEN}"})
    assert answer.status_code == 401


def test_nobody_is_told_how_to_get_in_and_a_wrong_token_is_not_made_good_by_a_cookie() -> None:
    browser = Client()
    browser.force_login(person(is_staff=True))

    assert Client().get("/metrics").status_code == 401
    assert browser.get("/metrics", headers={"Authorization": "Token wrong"}).status_code == 401
    assert browser.post("/metrics").status_code == 405


def test_what_happened_is_counted_by_its_kind() -> None:
    losses.Lost(owner=world.worker(dead_at=world.NOW, death="proved").pk).streaming().text()
    losses.sweep()

    found = scraped()

    assert found["holdfast_prompts_admitted_total origin=user"] == 1
    assert found["holdfast_attempts_total error_class=partial outcome=unknown"] == 1
    assert sum(value for name, value in found.items() if name.startswith("holdfast_recoveries_total")) == 1


def test_what_there_is_now_is_counted() -> None:
    world.owned()
    world.prompt(world.session(), wake=False)
    world.prompt(world.session())

    found = scraped()

    assert found["holdfast_live_drains"] == 1
    assert found["holdfast_workers"] == 1
    assert found["holdfast_prompts_pending"] == 2
    assert found["holdfast_queue_depth"] == len(world.wakes())
    assert found["holdfast_orphaned_sessions"] == 0
    assert found["holdfast_attempts_undecided"] == 0


def test_a_session_whose_worker_is_dead_is_no_live_drain() -> None:
    held = world.owned()
    Worker.objects.filter(pk=held.worker_id).update(dead_at=world.NOW, death="proved")

    found = scraped()

    assert (found["holdfast_live_drains"], found["holdfast_orphaned_sessions"]) == (0, 1)


def test_what_nobody_will_recover_before_a_person_acts_raises_no_alarm() -> None:
    held = world.owned()
    Worker.objects.filter(pk=held.worker_id).update(dead_at=world.NOW, death="proved")
    world.change(held.session_id, parked=True)

    assert scraped()["holdfast_orphaned_sessions"] == 0


def test_kinds_that_never_happened_are_told_as_none_so_that_the_first_is_an_increase() -> None:
    found = scraped()

    assert found["holdfast_attempts_total error_class= outcome=completed"] == 0
    assert found["holdfast_recoveries_total outcome=parked"] == 0


def test_durations_are_a_histogram_whose_buckets_add_up() -> None:
    for seconds in (0.001, 0.03, 0.03, 3600, -5):
        figures.observe(figures.WAKE_TO_DISPATCH, seconds)

    found = scraped()

    def bucket(bound: str) -> float:
        return found[f"holdfast_wake_to_dispatch_seconds_bucket le={bound}"]

    assert [bucket(bound) for bound in ("0.005", "0.025", "0.05", "60.0", "+Inf")] == [2, 2, 4, 4, 5]
    assert found["holdfast_wake_to_dispatch_seconds_count"] == 5
    assert found["holdfast_wake_to_dispatch_seconds_sum"] == pytest.approx(3600.061)


def test_totals_of_several_processes_add_up_and_survive_them() -> None:
    for _ in range(3):
        figures.count("attempts", "completed:")
        figures.store()

    assert Figure.objects.get(pk="attempts/completed:").value == 3
    assert scraped()["holdfast_attempts_total error_class= outcome=completed"] == 3


def test_what_could_not_be_stored_is_stored_later(monkeypatch) -> None:
    figures.count("attempts", "completed:")
    figures.observe(figures.DELTA_DELAY, 1)
    before = tally.take()
    tally.put_back(before)

    def refuse() -> None:
        raise DatabaseError

    with monkeypatch.context() as away:
        away.setattr("sessions_app.figures.kept.connection.cursor", refuse)
        figures.store()

    figures.count("attempts", "completed:")
    figures.store()
    assert figures.read()["attempts"] == {"completed:": 2}
    assert figures.read()["delta_delay"]["sum"] == 1


def test_a_process_that_counted_nothing_writes_nothing() -> None:
    with CaptureQueriesContext(connection) as queries:
        figures.store()

    assert len(queries) == 0


def test_a_scrape_reads_no_table_wholly_whatever_its_size() -> None:
    with CaptureQueriesContext(connection) as queries:
        for _, _, count in states.GAUGES:
            count()

    wholly_read = {
        line
        for query in queries.captured_queries
        for line in plan_of(query["sql"])
        if re.match(r"SCAN sessions_app_", line) and "USING" not in line
    }
    assert wholly_read == set()
    assert len(queries) == len(states.GAUGES)


def test_deleting_a_session_takes_nothing_from_a_total() -> None:
    session_id = world.session()
    world.prompt(session_id)
    before = scraped()["holdfast_prompts_admitted_total origin=user"]

    sessions.delete(session_id=session_id, now=world.after(1))

    assert scraped()["holdfast_prompts_admitted_total origin=user"] == before == 1
