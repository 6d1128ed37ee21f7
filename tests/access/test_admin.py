"""The admin: nobody but staff gets in, staff see what they may, administrators see all and edit what is theirs to."""

import itertools
import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Model
from django.urls import reverse

from sessions_app.admin.base import ReadOnly
from sessions_app.models import Session
from tests.access import people, routes
from tests.access.people import SECRET, VISITORS, Belongings, People

pytestmark = pytest.mark.django_db

OF_A_MODEL = ("", "add/", "{id}/history/", "{id}/delete/", "{id}/change/", "{id}/")
"""What every registered model has; {id} stands for a row."""

OF_THE_SITE = {
    "": 200,
    "login/": 302,
    "logout/": 405,
    "password_change/": 200,
    "password_change/done/": 200,
    "autocomplete/": 403,
    "jsi18n/": 200,
    "r/<path:content_type_id>/{id}/": 404,
    "auth/user/<id>/password/": 200,
    "sessions_app/session/find/": 302,
    "sessions_app/session/{id}/timeline/": 404,
    "sessions_app/chatmodel/<int:pk>/test/": 405,
    "^(?P<app_label>auth|sessions_app|recovery)/$": 200,
    "(?P<url>.*)$": 404,
}
"""The other pages, with what an administrator gets."""

MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)


def place(model: type[Model]) -> str:
    return f"{model._meta.app_label}/{model._meta.model_name}/"


def address(pattern: str) -> str:
    plain = (
        pattern.replace("{id}", "1").replace("(?P<app_label>auth|sessions_app|recovery)", "auth").strip("^$")
    )
    return "/admin/" + re.sub(r"<[^>]+>", "1", plain).replace("(?P1.*)", "nothing-here")


def test_every_page_of_the_admin_is_named_here() -> None:
    named = {f"{place(model)}{page}" for model in MODELS for page in OF_A_MODEL} | set(OF_THE_SITE)
    found = {
        pattern.removeprefix(routes.ADMIN).replace("/<path:object_id>/", "/{id}/")
        for pattern in routes.all_patterns()
        if pattern.startswith(routes.ADMIN)
    }

    assert found == named


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_pages_of_a_model_are_for_those_who_may(
    visitors: People, anns: Belongings, model: type[Model]
) -> None:
    row = model._default_manager.first()
    # Whoever asks for a row that is not there is sent to the index, which shows what they may see.
    refusals = (403,) if row is not None else (302, 403)
    browsers = {name: visitors.with_browser(name, csrf=True) for name in VISITORS}
    reads_only = isinstance(admin.site._registry[model], ReadOnly)
    before = people.all_of_it(anns)
    for page, method in itertools.product(OF_A_MODEL, ("GET", "POST")):
        where = f"/admin/{place(model)}{page}".replace("{id}", str(row.pk if row is not None else "nothing"))
        for name in ("anonymous", "owner", "other"):
            answer: Any = browsers[name].generic(method, where)
            assert (answer.status_code, answer["Location"].partition("?")[0]) == (302, "/admin/login/"), where
        refused = browsers["staff"].generic(method, where)
        assert refused.status_code in ((302,) if page == "{id}/" else refusals), where
        assert SECRET.encode() not in refused.content
        if reads_only and (page in ("add/", "{id}/delete/") or (method == "POST" and "change" in page)):
            assert browsers["administrator"].generic(method, where).status_code in refusals, where
    assert people.all_of_it(anns) == before


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_an_administrator_sees_every_model(visitors: People, anns: Belongings, model: type[Model]) -> None:
    browser = visitors.with_browser("administrator")
    row = model._default_manager.first()

    assert browser.get(f"/admin/{place(model)}").status_code == 200
    if row is not None and admin.site._registry[model].list_display_links != ():
        assert browser.get(f"/admin/{place(model)}{row.pk}/change/").status_code == 200


@pytest.mark.parametrize("pattern", OF_THE_SITE)
def test_pages_of_the_site_are_for_staff(visitors: People, anns: Belongings, pattern: str) -> None:
    where = address(pattern)

    assert visitors.with_browser("administrator").get(where).status_code == OF_THE_SITE[pattern], where
    for name in ("anonymous", "owner", "other"):
        answer = visitors.with_browser(name).get(where)
        is_login = pattern == "login/"
        assert answer.status_code in ((200,) if is_login else (302, 405)), (name, where)
        assert SECRET.encode() not in answer.content
    assert SECRET.encode() not in visitors.with_browser("staff").get(where).content


def test_staff_see_exactly_what_they_were_allowed(visitors: People, anns: Belongings) -> None:
    visitors.users["staff"].user_permissions.add(_may_view_sessions())
    browser = visitors.with_browser("staff", csrf=True)

    shown = browser.get(reverse("admin:sessions_app_session_change", args=[anns.session_id]))

    assert shown.status_code == 200
    assert SECRET in shown.content.decode()
    assert (
        browser.post(reverse("admin:sessions_app_session_change", args=[anns.session_id])).status_code == 403
    )
    for model in set(MODELS) - {Session}:
        assert browser.get(f"/admin/{place(model)}").status_code == 403, model


def _may_view_sessions() -> Permission:
    return Permission.objects.get(codename="view_session", content_type__app_label="sessions_app")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_an_act_needs_its_form_and_this_site(visitors: People, anns: Belongings, model: type[Model]) -> None:
    before, users = people.all_of_it(anns), User.objects.count()
    row = model._default_manager.first()
    for action in admin.site._registry[model].actions or ("delete_selected",):
        form = f"action={action}&_selected_action={row.pk if row else 'x'}&confirmed=1&post=yes"

        def post(csrf: bool, form: str = form, **headers: str) -> int:
            browser = visitors.with_browser("administrator", csrf=csrf)
            kind = "application/x-www-form-urlencoded"
            answer = browser.generic("POST", f"/admin/{place(model)}", form, kind, headers=headers)
            return int(answer.status_code)

        assert post(csrf=False) == 403
        assert post(csrf=True, Origin="https://elsewhere.example") == 403
    assert people.all_of_it(anns) == before
    assert User.objects.count() == users
    assert not Group.objects.exists()
