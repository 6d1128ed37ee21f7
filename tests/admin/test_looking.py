"""All that is stored can be looked at, by id, for a fixed number of statements; nothing can be changed."""

import html
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from recovery.models import RecoveryClaim
from sessions_app import access, models
from sessions_app.models import (
    ApiToken,
    ModelTest,
    PartCheckpoint,
    Session,
    SessionNote,
    SetupLink,
    Tombstone,
    ToolOverflow,
)
from tests.api.test_attempts import attempt
from tests.support import world
from tests.web.conversations import Conversation

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
CONFIGURED: set[type[Model]] = {models.Agent, models.ChatModel, models.McpServer, models.Provider}
SHOWN = sorted(
    (model for model in apps.get_app_config("sessions_app").get_models() if model not in CONFIGURED),
    key=lambda model: model.__name__,
)


def everything(user_id: int) -> str:
    """One more row in every table, with hostile text wherever a text goes."""
    session_id = world.session(user_id=user_id, title=HOSTILE)
    conversation = Conversation(session_id=session_id)
    conversation.exchange(HOSTILE, HOSTILE)
    part = conversation.begin_text(conversation.begin_answer(), HOSTILE)
    attempt(session_id, end="unknown")
    world.prompt(session_id, HOSTILE)
    world.change(session_id, owner=world.worker(host=HOSTILE))
    access.create_token(user_id=user_id, name=HOSTILE, now=timezone.now())
    SetupLink.objects.create(digest=part, created_at=timezone.now())
    models.Figure.objects.create(pk=f"figure of {session_id}", value=1)
    Tombstone.objects.create(pk=f"dead-{session_id}", deleted_at=timezone.now())
    SessionNote.objects.create(session_id=session_id, name=HOSTILE, text=HOSTILE, updated_at=timezone.now())
    ModelTest.objects.create(
        id=f"att_{part}",
        provider=HOSTILE,
        model=HOSTILE,
        by=HOSTILE,
        prepared_at=timezone.now(),
        text=HOSTILE,
        reasoning=HOSTILE,
        error={"message": HOSTILE},
    )
    ToolOverflow.objects.create(
        pk=f"ovf_{session_id}", session_id=session_id, created_at=timezone.now(), content=b"x", is_text=True
    )
    return session_id


def list_of(model: type[Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def page_of(row: Model) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


def statements(act: Callable[[], Any]) -> list[str]:
    with CaptureQueriesContext(connection) as asked:
        act()
    return [query["sql"] for query in asked.captured_queries]


def test_every_model_is_registered() -> None:
    assert [model for model in (*SHOWN, *CONFIGURED) if not admin.site.is_registered(model)] == []


@pytest.mark.parametrize("model", SHOWN)
def test_a_list_costs_the_same_however_many_rows_it_shows(
    browser: Client, administrator: User, model: type[Model]
) -> None:
    def look() -> None:
        assert browser.get(list_of(model)).status_code == 200

    for _ in range(2):
        everything(administrator.pk)
    look()
    few = statements(look)
    for _ in range(4):
        everything(administrator.pk)
    many = statements(look)

    assert len(many) == len(few) <= 8
    assert not [sql for sql in many if "COUNT(*)" in sql or "DISTINCT" in sql or "OFFSET" in sql]


@pytest.mark.parametrize("model", SHOWN)
def test_a_row_is_shown_and_what_it_holds_is_no_markup(
    browser: Client, administrator: User, model: type[Model]
) -> None:
    everything(administrator.pk)

    pages = [browser.get(list_of(model))]
    pages += [browser.get(page_of(row)) for row in model._default_manager.all()]

    assert len(pages) > 1
    for page in pages:
        assert page.status_code == 200
        assert b"<script>alert" not in page.content
        assert b"<img src=x" not in page.content


def test_the_page_of_a_session_costs_the_same_however_long_it_is(
    browser: Client, administrator: User
) -> None:
    session_id = everything(administrator.pk)
    page = page_of(Session(pk=session_id))
    few = statements(lambda: browser.get(page))
    for number in range(3):
        Conversation(session_id=session_id).exchange(f"Question {number}", "Answer")
    many = statements(lambda: browser.get(page))

    assert len(many) == len(few) <= 8
    assert not [sql for sql in many if "COUNT(*)" in sql]


def test_the_page_of_a_session_links_what_belongs_to_it(browser: Client, administrator: User) -> None:
    session_id = everything(administrator.pk)
    session = Session.objects.get(pk=session_id)

    shown = browser.get(page_of(session)).content.decode()

    for rows in (session.attempts, session.inputs, session.messages, session.parts, session.events):
        assert all(page_of(row) in shown for row in rows.all())
    for model in (models.ProviderAttempt, models.SessionInput, models.SessionMessage, RecoveryClaim):
        assert f"{list_of(model)}?session={session_id}" in shown
    assert "prompt.admitted" in shown
    assert "orphaned" in shown or "busy" in shown


@pytest.mark.parametrize("model", SHOWN)
def test_not_even_a_superuser_changes_adds_or_deletes(
    browser: Client, administrator: User, model: type[Model]
) -> None:
    everything(administrator.pk)
    before = world.rows_of(model)
    row = model._default_manager.first()
    assert row is not None

    answers = [
        browser.get(f"{list_of(model)}add/"),
        browser.post(f"{list_of(model)}add/", {}),
        browser.post(page_of(row), {"title": "changed"}),
        browser.post(page_of(row).replace("change/", "delete/"), {"post": "yes"}),
        browser.post(
            list_of(model), {"action": "delete_selected", "_selected_action": row.pk, "post": "yes"}
        ),
    ]

    # A list without acts ignores an act that is asked of it.
    assert {answer.status_code for answer in answers[:-1]} == {403}
    assert answers[-1].status_code in (200, 302)
    assert world.rows_of(model) == before


def test_a_session_is_found_by_its_whole_id(browser: Client, administrator: User) -> None:
    wanted, other = everything(administrator.pk), everything(administrator.pk)

    for model in (Session, models.SessionEvent, models.ProviderAttempt, models.SessionInput):
        found = browser.get(list_of(model), {"q": wanted}).content.decode()
        assert wanted in found
        assert other not in found
    for nothing in ("\0", wanted[:-1], "nothing"):
        page = browser.get(list_of(Session), {"q": nothing})
        assert page.status_code == 200
        assert nothing == "\0" or wanted not in page.content.decode().replace(f'value="{nothing}"', "")


@pytest.mark.parametrize("name", ["needs_decision", "owned", "owed"])
def test_sessions_are_filtered(browser: Client, administrator: User, name: str) -> None:
    plain = world.session(user_id=administrator.pk)
    wanted = {
        "needs_decision": world.session(user_id=administrator.pk),
        "owned": world.owned(user_id=administrator.pk).session_id,
        "owed": world.session(user_id=administrator.pk),
    }
    world.change(wanted["needs_decision"], parked=True)
    world.change(wanted["owed"], owed_at=timezone.now())

    shown = browser.get(list_of(Session), {name: "yes"}).content.decode()

    assert [each for each in (plain, *wanted.values()) if each in shown] == [wanted[name]]


def test_states_of_workers_are_told(browser: Client) -> None:
    world.worker()
    world.worker(stopped_at=timezone.now())
    world.worker(dead_at=timezone.now(), death="proved")

    shown = browser.get(list_of(models.Worker)).content.decode()

    assert all(f">{state}</td>" in shown for state in ("alive", "stopped", "dead (proved)"))


def test_digests_of_secrets_are_not_shown(browser: Client, administrator: User) -> None:
    everything(administrator.pk)
    for row in (ApiToken.objects.get(), SetupLink.objects.get()):
        for address in (list_of(type(row)), page_of(row)):
            assert row.digest.encode() not in browser.get(address).content


def test_tokens_are_revoked_by_those_who_may(browser: Client, administrator: User) -> None:
    token = access.create_token(user_id=administrator.pk, name="", now=timezone.now()).token
    kept = access.create_token(user_id=administrator.pk, name="", now=timezone.now()).token
    revoke = {"action": "revoke", "_selected_action": token.pk}
    looker = Client()
    staff = User.objects.create_user("staff", is_staff=True)
    staff.user_permissions.add(Permission.objects.get(codename="view_apitoken"))
    looker.force_login(staff)

    assert looker.get(list_of(ApiToken)).status_code == 200
    looker.post(list_of(ApiToken), revoke)
    assert not ApiToken.objects.filter(revoked_at__isnull=False).exists()
    browser.post(list_of(ApiToken), revoke)

    assert list(ApiToken.objects.filter(revoked_at=None)) == [kept]


def test_agents_are_configured(browser: Client) -> None:
    add = reverse("admin:sessions_app_agent_add")
    form = {"name": "pirate", "system": "Talk like one.", "model": "", "steps": "25", "tool_modes": "{}"}

    added = browser.post(add, form)

    assert added.status_code == 302, added.content
    assert models.Agent.objects.get().system == "Talk like one."
    browser.post(page_of(models.Agent.objects.get()), form | {"name": "other", "system": "Softly."})
    assert [(agent.name, agent.system) for agent in models.Agent.objects.all()] == [("pirate", "Softly.")]


@pytest.mark.parametrize("written", ['{"calculator": "denied"}', '["calculator"]', '{"*": ["deny"]}'])
def test_a_mode_that_is_none_is_refused_instead_of_allowing_the_tool(browser: Client, written: str) -> None:
    form = {"name": "careful", "steps": "25", "tool_modes": written, "hosted_tools": "{}"}

    answer = browser.post(reverse("admin:sessions_app_agent_add"), form)

    assert answer.status_code == 200
    assert "errorlist" in answer.content.decode()
    assert not models.Agent.objects.exists()


SEARCH = '[{"type": "web_search_20250305", "name": "web_search"}]'


@pytest.mark.parametrize(
    ("written", "refused"),
    [
        (f'{{"anthropic": {SEARCH}, "openai-responses": [{{"type": "web_search"}}]}}', ""),
        ("{}", ""),
        ("", ""),
        ("[1]", "Write an object"),
        (f'{{"openai": {SEARCH}}}', "runs no tools itself. Name one of anthropic, openai-responses."),
        ('{"anthropic": {"type": "web_search_20250305"}}', "a list of tools"),
        ('{"anthropic": ["web_search"]}', "whose type is one of web_search, web_fetch, code_execution"),
        ('{"anthropic": [{"type": "bash_20250124", "name": "bash"}]}', "whose type is one of"),
        ('{"openai-responses": [{"type": "web_searching"}]}', "whose type is one of"),
        ('{"openai-responses": [{"type": "mcp", "authorization": "secret"}]}', "whose type is one of"),
    ],
)
def test_what_a_provider_may_run_itself_is_checked_when_it_is_configured(
    browser: Client, written: str, refused: str
) -> None:
    add = reverse("admin:sessions_app_agent_add")
    form = {"name": "searching", "steps": "25", "tool_modes": "", "hosted_tools": written}

    answer = browser.post(add, form)

    assert answer.status_code == (200 if refused else 302), answer.content
    assert refused in html.unescape(answer.content.decode())
    stored = list(models.Agent.objects.values_list("tool_modes", "hosted_tools"))
    assert stored == ([] if refused else [({}, json.loads(written or "{}"))])


def test_staff_without_permission_and_strangers_see_nothing(administrator: User) -> None:
    session_id = everything(administrator.pk)
    staff = User.objects.create_user("staff", is_staff=True)
    client = Client()
    assert client.get(list_of(Session)).status_code == 302
    client.force_login(staff)

    for model in SHOWN:
        assert client.get(list_of(model)).status_code == 403
    assert client.get(page_of(Session(pk=session_id))).status_code == 403


def test_the_queue_is_not_edited_by_hand() -> None:
    queue = apps.get_app_config("django_q").get_models()

    assert [model for model in queue if admin.site.is_registered(model)] == []


def test_checkpoints_show_the_text_so_far(browser: Client, administrator: User) -> None:
    everything(administrator.pk)

    assert b"&lt;script&gt;" in browser.get(list_of(PartCheckpoint)).content
