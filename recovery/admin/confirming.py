"""What deciding has in common: a page of consequences first, then one after the other, each told."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.http import HttpRequest
from django.template.response import TemplateResponse

from schema.problems import Problem
from schema.text import clean
from sessions_app import log
from sessions_app.admin.base import ModelAdmin, table

MAX_REASON_CHARACTERS: Final = 500
MOST: Final = 200
"""Rows of one page of consequences: what nobody reads, nobody decides."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """What is said before anything is decided."""

    action: str
    title: str
    meaning: str
    head: tuple[str, ...]
    rows: dict[str, list[Any]]
    """By the id of what is to be decided; every cell is escaped unless it is safe already."""
    is_refused: bool
    """All of them will be."""


def is_confirmed(request: HttpRequest) -> bool:
    return "confirmed" in request.POST


def reason(request: HttpRequest) -> str | None:
    return clean(request.POST.get("reason", "")).strip()[:MAX_REASON_CHARACTERS] or None


def render(model_admin: ModelAdmin, request: HttpRequest, page: Page) -> TemplateResponse:
    context = {
        **model_admin.admin_site.each_context(request),
        "title": page.title,
        "meaning": page.meaning,
        "opts": model_admin.opts,
        "action": page.action,
        "chosen": list(page.rows),
        "checkbox": ACTION_CHECKBOX_NAME,
        "foreseen": table(page.head, page.rows.values()),
        "is_refused": page.is_refused,
        "longest_reason": MAX_REASON_CHARACTERS,
    }
    return TemplateResponse(request, "admin/recovery/decide.html", context)


def decide_each(
    model_admin: ModelAdmin,
    request: HttpRequest,
    acts: Iterable[tuple[str, Callable[[], object]]],
    *,
    done: str,
) -> None:
    """Act on one after the other and say what came of each; a refusal does not stop the others."""
    for pk, act in acts:
        try:
            act()
        except (Problem, log.SessionGone) as refused:
            model_admin.message_user(request, f"{pk}: {refused}", messages.WARNING)
        else:
            model_admin.message_user(request, f"{pk}: {done}", messages.SUCCESS)


def chosen_rows(model_admin: ModelAdmin, request: HttpRequest, rows: Any, *, most: int) -> list[Any]:
    """What was chosen, in order; nothing, and a word about it, when it is too much."""
    found = list(rows.order_by("pk")[: most + 1])
    if len(found) <= most:
        return found
    model_admin.message_user(request, f"Choose at most {most} at a time.", messages.ERROR)
    return []
