"""With any number of rows: pages by position, nothing counted, nothing read but what is shown."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from recovery.models import RecoveryClaim
from sessions_app import models
from sessions_app.admin import timeline
from sessions_app.models import ProviderAttempt, Session, SessionEvent
from tests.admin.test_looking import HOSTILE, everything, list_of, page_of
from tests.api.test_attempts import attempt
from tests.support import world

pytestmark = pytest.mark.django_db

MANY = 2 * timeline.SHOWN + 20
MOST = 8


def events(session_id: str, count: int = MANY) -> None:
    """More events, as many as one likes."""
    head = world.row(session_id).head_seq
    SessionEvent.objects.bulk_create(
        SessionEvent(
            session_id=session_id,
            seq=seq,
            type="session.updated",
            version=1,
            data={"title": HOSTILE},
            time=world.NOW,
        )
        for seq in range(head + 1, head + 1 + count)
    )
    world.change(session_id, head_seq=head + count)


def walk(browser: Client, address: str) -> list[str]:
    """Every page from the newest on, by its links; each for few statements that read no whole table."""
    shown, following = [], address
    while following:
        with CaptureQueriesContext(connection) as asked:
            page = browser.get(following)
        assert page.status_code == 200
        assert len(asked) <= MOST, [each["sql"] for each in asked.captured_queries]
        for each in asked.captured_queries:
            assert not re.search(r"COUNT\(\*\)|OFFSET|DISTINCT", each["sql"]), each["sql"]
            assert not scanned(each["sql"]), each["sql"]
        shown.append(page.content.decode())
        older = re.search(r'href="([^"]*before=[^"]*)">Older', shown[-1])
        following = address.partition("?")[0] + older[1].replace("&amp;", "&") if older else ""
    return shown


def scanned(sql: str) -> list[str]:
    """The tables that the database would read from end to end, as far as they grow. To read some rows from one
    end is another thing."""
    if connection.vendor != "sqlite" or not sql.startswith("SELECT"):
        return []
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN QUERY PLAN " + sql)
        plan = [str(row[3]) for row in cursor.fetchall()]
    if " WHERE " not in sql and " LIMIT " in sql and not any("TEMP B-TREE" in step for step in plan):
        return []
    return [step for step in plan if re.match(r"SCAN sessions_app_\w+$", step)]


def test_a_timeline_is_walked_page_by_page(browser: Client, administrator: User) -> None:
    session_id = everything(administrator.pk)
    events(session_id)
    other = everything(administrator.pk)

    pages = walk(browser, reverse("admin:sessions_app_session_timeline", args=[session_id]))

    seqs = [int(seq) for page in pages for seq in re.findall(r'sessionevent/\d+/change/">(\d+)<', page)]
    assert seqs == sorted(world.seqs(session_id), reverse=True)
    assert len(pages) == -(-len(seqs) // timeline.SHOWN)
    assert "<details>" in pages[0]
    assert not [page for page in pages if "<script>alert" in page or other in page]


def test_the_page_of_a_session_with_many_events_leads_on(browser: Client, administrator: User) -> None:
    session_id = everything(administrator.pk)
    events(session_id)

    page = browser.get(page_of(Session(pk=session_id))).content.decode()

    shown = world.seqs(session_id)[-timeline.SHOWN :]
    assert f"timeline/?before={shown[0]}" in page
    assert all(f">{seq}<" in page for seq in shown)


@pytest.mark.parametrize("before", ["x", "-1", "1.5", "9" * 30, "", "\0"])
def test_a_position_that_is_none_leads_to_the_newest(
    browser: Client, administrator: User, before: str
) -> None:
    address = reverse("admin:sessions_app_session_timeline", args=[everything(administrator.pk)])

    assert browser.get(address, {"before": before})["Location"] == address
    assert browser.get(list_of(SessionEvent), {"before": before}).status_code in (200, 302)
    assert browser.get(list_of(ProviderAttempt), {"before": [before, "x"]}).status_code == 302


def test_lists_are_walked_page_by_page(browser: Client, administrator: User) -> None:
    session_id = everything(administrator.pk)
    made = {attempt(session_id, seconds=number // 3) for number in range(120)}
    made |= set(ProviderAttempt.objects.values_list("pk", flat=True))

    for query in ("", f"?session={session_id}"):
        pages = walk(browser, list_of(ProviderAttempt) + query)

        found = [pk for page in pages for pk in re.findall(r'class="field-id"><a [^>]*>(att_\w+)<', page)]
        assert len(found) == len(made) == len(set(found))
        assert set(found) == made
        assert [len(re.findall(r'class="field-id"', page)) for page in pages] == [50, 50, len(made) - 100]


@pytest.mark.parametrize(
    "model",
    [
        models.SessionEvent,
        models.SessionMessage,
        models.SessionInput,
        models.MessagePart,
        models.ProviderAttempt,
        models.Session,
        models.Worker,
        RecoveryClaim,
    ],
)
def test_the_first_page_of_a_list_reads_no_whole_table(
    browser: Client, administrator: User, model: Any
) -> None:
    everything(administrator.pk)

    walk(browser, list_of(model))


def test_the_index_begins_with_what_needs_a_decision_and_who_works(
    browser: Client, administrator: User
) -> None:
    session_id = everything(administrator.pk)
    worker = world.row(session_id).owner
    assert worker is not None
    unknown = ProviderAttempt.objects.get(state="unknown")
    parked = world.session(user_id=administrator.pk, title=HOSTILE)
    world.change(parked, parked=True)

    (index,) = walk(browser, reverse("admin:index"))

    assert page_of(unknown) in index
    assert page_of(Session(pk=parked)) in index
    assert page_of(worker) in index
    assert f"{list_of(Session)}?owner__id__exact={worker.pk}" in index
    assert index.index("Needs a decision") < index.index("Live workers") < index.index("Latest recoveries")
    assert index.index("Latest recoveries") < index.index("app-sessions_app")
    assert "<script>alert" not in index


def test_the_index_shows_staff_what_they_may_see_and_no_more(browser: Client, administrator: User) -> None:
    everything(administrator.pk)
    client = Client()
    client.force_login(User.objects.create_user("staff", is_staff=True))

    index = client.get(reverse("admin:index")).content.decode()

    assert "Needs a decision" not in index
    assert "att_" not in index.replace("att_…", "")


def test_an_id_leads_to_its_page(browser: Client, administrator: User) -> None:
    session = Session.objects.get(pk=everything(administrator.pk))
    find = reverse("admin:sessions_app_session_find")

    for row in (
        session,
        session.attempts.first(),
        session.messages.first(),
        session.parts.first(),
        session.owner,
    ):
        assert row is not None
        assert browser.get(find, {"id": f" {row.pk} "})["Location"] == page_of(row)
    claim = RecoveryClaim(pk="clm_00000000")
    assert browser.get(find, {"id": claim.pk})["Location"] == page_of(claim)
    for nothing in ("", "nonsense", "ses_x/../y", "\0", HOSTILE):
        assert browser.get(find, {"id": nothing})["Location"] == reverse("admin:index")
    assert b"<script>alert" not in browser.get(reverse("admin:index")).content
