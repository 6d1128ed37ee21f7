"""Unknown attempts are decided in the admin, after a page that lists the consequences; claims are looked at."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.contrib.messages import get_messages
from django.test import Client
from django.utils import timezone

from recovery.admin import attempts as attempts_admin
from recovery.admin import confirming
from recovery.models import RecoveryClaim
from sessions_app import sessions
from sessions_app.models import Agent, MessagePart, ProviderAttempt, Session, SessionInput, Worker
from sessions_app.providers import registry
from tests.admin.test_looking import HOSTILE, list_of, page_of, statements
from tests.recovery import scenes
from tests.recovery.test_claims_api import claimed
from tests.recovery.test_inquiries import Keeper
from tests.support import world

pytestmark = pytest.mark.django_db


def unknown(user_id: int, *, received: str = "", hosted: bool = False) -> str:
    session_id = world.session(user_id=user_id)
    scenes.say(session_id)
    return scenes.unknown_attempt(session_id, received=received, hosted=hosted)


def post(browser: Client, action: str, *attempts: str, **form: str) -> Any:
    return browser.post(
        list_of(ProviderAttempt), {"action": action, "_selected_action": list(attempts), **form}
    )


def said(response: Any) -> list[str]:
    return [str(message) for message in get_messages(response.wsgi_request)]


def session_of(attempt: str) -> str:
    return ProviderAttempt.objects.get(pk=attempt).session_id


def test_a_page_lists_the_consequences_before_anything_is_decided(
    browser: Client, administrator: User
) -> None:
    plain = unknown(administrator.pk, received=HOSTILE)
    left_behind = unknown(administrator.pk, hosted=True)
    scenes.say(session_of(left_behind), "Something else")
    decided = unknown(administrator.pk)
    post(browser, "abandon", decided, confirmed="yes")
    before = world.rows_of(ProviderAttempt)

    page = post(browser, "retry", plain, left_behind, decided)

    shown = page.content.decode()
    assert page.status_code == 200
    assert all(f">{attempt}</a>" in shown for attempt in (plain, left_behind, decided))
    assert shown.count("Will be decided") == 1
    assert "Refused. A newer turn exists" in shown
    assert "Refused. Already decided: abandon, by root." in shown
    assert "tools of the provider were offered" in shown
    assert shown.count("may have been billed") == 3
    assert "&lt;script&gt;alert" in shown
    assert "<script>alert" not in shown
    assert world.rows_of(ProviderAttempt) == before


@pytest.mark.rows_of_its_own
def test_effects_of_the_step_are_listed(browser: Client, administrator: User) -> None:
    attempt = unknown(administrator.pk)
    session_id = session_of(attempt)
    call = scenes.unknown_call(session_id, "send_mail")
    ProviderAttempt.objects.filter(pk=attempt).update(
        message=ProviderAttempt.objects.get(message__parts=call).message_id
    )

    assert "send_mail (outcome unknown)" in post(browser, "abandon", attempt).content.decode()


def test_many_are_decided_at_once_with_who_when_and_why(browser: Client, administrator: User) -> None:
    others = User.objects.create_user("ann").pk
    first, second = unknown(others), unknown(others)

    answered = post(browser, "retry", first, second, confirmed="yes", reason=" Lost\0 in the cut ")

    assert answered.status_code == 302
    assert said(answered) == [f"{first}: decided, retry.", f"{second}: decided, retry."]
    for attempt in ProviderAttempt.objects.filter(pk__in=(first, second)):
        assert attempt.decision is not None
        assert attempt.decision.pop("at")
        assert attempt.decision == {
            "action": "retry", "by": "root", "policy": False, "reason": "Lost in the cut",
        }  # fmt: skip
        assert SessionInput.objects.filter(session_id=attempt.session_id, origin="retry").count() == 1
        assert attempt.decision["by"] in browser.get(page_of(attempt)).content.decode()


def test_one_that_is_refused_does_not_stop_the_others(browser: Client, administrator: User) -> None:
    taken, free = unknown(administrator.pk), unknown(administrator.pk)
    post(browser, "abandon", taken, confirmed="yes")

    answered = post(browser, "retry", taken, free, confirmed="yes")

    refusal, success = said(answered)[-2:]
    assert refusal.startswith(f"{taken}: root already decided this: abandon")
    assert success == f"{free}: decided, retry."


def test_the_list_offers_what_can_be_done_with_chosen_rows(browser: Client, administrator: User) -> None:
    unknown(administrator.pk)

    page = browser.get(list_of(ProviderAttempt)).content.decode()

    assert 'id="action-toggle"' in page
    for action in ("abandon", "retry", "ask"):
        assert f'<option value="{action}">' in page


def test_only_those_who_may_decide(administrator: User) -> None:
    attempt = unknown(administrator.pk)
    looker = Client()
    staff = User.objects.create_user("staff", is_staff=True)
    staff.user_permissions.add(Permission.objects.get(codename="view_providerattempt"))
    looker.force_login(staff)

    assert looker.get(list_of(ProviderAttempt)).status_code == 200
    post(looker, "abandon", attempt, confirmed="yes")

    assert ProviderAttempt.objects.get(pk=attempt).decision is None
    staff.user_permissions.add(Permission.objects.get(codename="change_providerattempt"))
    post(looker, "abandon", attempt, confirmed="yes")
    assert (ProviderAttempt.objects.get(pk=attempt).decision or {})["by"] == "staff"


def test_the_consequences_cost_the_same_however_many_are_chosen(browser: Client, administrator: User) -> None:
    attempts = [unknown(administrator.pk, received="So far") for _ in range(6)]
    post(browser, "retry", attempts[0])

    few = statements(lambda: post(browser, "retry", *attempts[:2]))
    many = statements(lambda: post(browser, "retry", *attempts))

    assert len(many) == len(few) <= 12


def test_an_attempt_shows_its_facts_what_was_received_and_where_to_decide(
    browser: Client, administrator: User
) -> None:
    attempt = ProviderAttempt.objects.get(pk=unknown(administrator.pk, received=HOSTILE))

    shown = browser.get(page_of(attempt)).content.decode()

    positions = [shown.index(f"<td>{fact}</td>") for fact in ("prepared", "dispatched", "unknown")]
    assert positions == sorted(positions)
    assert "d" * 64 in shown
    assert "&lt;script&gt;alert" in shown
    assert "<script>alert" not in shown
    assert f"?q={attempt.pk}" in shown
    post(browser, "abandon", attempt.pk, confirmed="yes")
    assert "Abandon, retry or ask" not in browser.get(page_of(attempt)).content.decode()


def test_claims_are_shown_with_links_and_cannot_be_changed(browser: Client, administrator: User) -> None:
    claim = claimed(administrator.pk)
    other = claimed(administrator.pk)
    before = world.rows_of(RecoveryClaim)

    listed = browser.get(list_of(RecoveryClaim)).content.decode()
    page = browser.get(page_of(claim)).content.decode()

    for shown in (listed, page):
        for row in (
            Session(pk=claim.session_id),
            Worker(pk=claim.lost_owner),
            Worker(pk=claim.worker),
            SessionInput(pk=claim.continuation),
        ):
            assert page_of(row) in shown
    assert admin.site.is_registered(RecoveryClaim)
    found = browser.get(list_of(RecoveryClaim), {"q": claim.session_id}).content.decode()
    assert claim.pk in found
    assert other.pk not in found
    assert claim.pk not in browser.get(list_of(RecoveryClaim), {"outcome__exact": "parked"}).content.decode()
    assert browser.post(page_of(claim), {"outcome": "held"}).status_code == 403
    assert browser.post(page_of(claim).replace("change/", "delete/"), {"post": "yes"}).status_code == 403
    assert world.rows_of(RecoveryClaim) == before


def test_the_list_of_claims_costs_the_same_however_long_it_is(browser: Client, administrator: User) -> None:
    claimed(administrator.pk)
    browser.get(list_of(RecoveryClaim))
    few = statements(lambda: browser.get(list_of(RecoveryClaim)))
    for _ in range(3):
        claimed(administrator.pk)
    many = statements(lambda: browser.get(list_of(RecoveryClaim)))

    assert len(many) == len(few) <= 10


def test_orphaned_sessions_are_filtered(browser: Client, administrator: User) -> None:
    alive = world.owned(user_id=administrator.pk).session_id
    orphans = [world.session(user_id=administrator.pk) for _ in range(2)]
    world.change(orphans[0], owner=world.worker(stopped_at=world.NOW))
    world.change(orphans[1], owner=world.worker(dead_at=world.NOW, death="assumed"))

    shown = browser.get(list_of(Session), {"orphaned": "yes"}).content.decode()

    assert [each for each in (alive, *orphans) if each in shown] == orphans


@pytest.mark.both_databases
@pytest.mark.parametrize("site", ["continue", "off"])
@pytest.mark.parametrize("own", ["", "ask", "off"])
@pytest.mark.rows_of_its_own
def test_the_filter_for_decisions_finds_what_the_status_says(
    browser: Client, administrator: User, settings: Any, site: str, own: str
) -> None:
    settings.HOLDFAST_RECOVERY_POLICY = site
    for name in ("continue", "ask", "off"):
        Agent.objects.create(name=name, recovery_policy=name)
    made = []
    for agent in ("default", "continue", "ask", "off"):
        for scene in (scenes.unknown_attempt, scenes.unknown_call, scenes.waiting_call, scenes.answer):
            session_id = world.session(user_id=administrator.pk, agent=agent)
            world.change(session_id, recovery_policy=own)
            scenes.say(session_id)
            scene(session_id)
            made.append(session_id)
    both = world.session(user_id=administrator.pk)
    scenes.say(both)
    scenes.unknown_attempt(both)
    scenes.waiting_call(both)
    made.append(both)
    rows = Session.objects.filter(pk__in=made)
    found = sessions.statuses([row.pk for row in rows], now=world.NOW)
    wanted = {pk for pk, status in found.items() if status.state == "needs_decision"}

    shown = browser.get(list_of(Session), {"needs_decision": "yes"}).content.decode()

    assert {session_id for session_id in made if session_id in shown} == wanted


def test_workers_are_filtered_by_condition(browser: Client) -> None:
    now = timezone.now()
    workers = {
        "alive": world.worker(heartbeat_at=now),
        "stale": world.worker(),
        "dead": world.worker(dead_at=now, death="proved"),
        "stopped": world.worker(stopped_at=now),
    }
    Worker.objects.filter(pk=workers["stale"].pk).update(heartbeat_at="2001-01-01T00:00:00Z")

    for condition, found in {"stale": {"stale"}, "dead": {"dead"}, "alive": {"alive", "stale"}}.items():
        shown = browser.get(list_of(Worker), {"condition": condition}).content.decode()
        assert {name for name, worker in workers.items() if worker.pk in shown} == found


@pytest.mark.rows_of_its_own
def test_a_provider_is_asked_about_those_that_it_keeps(
    browser: Client, administrator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, other = unknown(administrator.pk), unknown(administrator.pk)
    ProviderAttempt.objects.filter(pk=kept).update(provider_response_id="resp_1")
    monkeypatch.setattr(registry, "get_provider", lambda name, model: Keeper())

    answered = post(browser, "ask", kept, other)

    assert said(answered)[0] == f"{kept}: its provider is asked."
    assert said(answered)[1].startswith(f"{other}: Nobody can be asked")
    assert world.row(session_of(kept)).inquiry == kept
    assert world.row(session_of(kept)).owed_at is not None
    assert world.row(session_of(other)).owed_at is None
    assert post(browser, "ask", kept).status_code == 302
    assert ProviderAttempt.objects.get(pk=kept).decision is None


def test_no_more_are_asked_about_or_decided_at_once_than_a_page_can_bear(
    browser: Client, administrator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confirming, "MOST", 1)
    monkeypatch.setattr(attempts_admin, "MOST_ASKED", 1)
    attempts = [unknown(administrator.pk) for _ in range(2)]
    before = world.rows_of(ProviderAttempt)

    for action in ("abandon", "retry", "ask"):
        answered = post(browser, action, *attempts, confirmed="yes")
        assert "at most 1 at a time" in said(answered)[-1]

    assert world.rows_of(ProviderAttempt) == before


def post_calls(browser: Client, action: str, *calls: str, **form: str) -> Any:
    return browser.post(list_of(MessagePart), {"action": action, "_selected_action": list(calls), **form})


def call(user_id: int, scene: Callable[[str, str], str]) -> str:
    session_id = world.session(user_id=user_id)
    scenes.say(session_id)
    return scene(session_id, HOSTILE)


@pytest.mark.parametrize(
    ("action", "scene"),
    [
        ("approve", scenes.waiting_call),
        ("deny", scenes.waiting_call),
        ("mark_done", scenes.unknown_call),
        ("mark_not_done", scenes.unknown_call),
    ],
)
def test_calls_are_decided_after_a_page_of_consequences(
    browser: Client, administrator: User, action: str, scene: Callable[[str, str], str]
) -> None:
    calls = [call(administrator.pk, scene) for _ in range(2)]
    other = call(
        administrator.pk, scenes.unknown_call if scene is scenes.waiting_call else scenes.waiting_call
    )
    before = world.rows_of(MessagePart)

    page = post_calls(browser, action, *calls, other)

    shown = page.content.decode()
    assert (shown.count("Will be decided"), shown.count("Refused. ")) == (2, 1)
    assert "<script>alert" not in shown
    assert world.rows_of(MessagePart) == before
    answered = post_calls(browser, action, *calls, other, confirmed="yes", reason="Looked")
    assert said(answered)[:2] == [f"{pk}: decided, {action}." for pk in calls]
    assert said(answered)[2].startswith(f"{other}: ")
    for row in MessagePart.objects.filter(pk__in=calls):
        assert row.decision is not None
        assert (row.decision["action"], row.decision["by"], row.decision["reason"]) == (
            action,
            "root",
            "Looked",
        )
        assert world.row(row.session_id).owed_at is not None
    again = post_calls(browser, action, calls[0]).content.decode()
    assert f"Refused. Already decided: {action}, by root." in again


def test_calls_that_need_a_decision_are_filtered(browser: Client, administrator: User) -> None:
    waiting = call(administrator.pk, scenes.waiting_call)
    unknown_one = call(administrator.pk, scenes.unknown_call)
    done = call(administrator.pk, scenes.finished_call)

    shown = browser.get(list_of(MessagePart), {"needs_decision": "yes"}).content.decode()

    assert [each for each in (waiting, unknown_one, done) if each in shown] == [waiting, unknown_one]
