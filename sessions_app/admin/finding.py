"""From an id to its page."""

from typing import Final

from django.db.models import Model
from django.urls import reverse

from schema.text import clean
from sessions_app.models import MessagePart, ProviderAttempt, Session, SessionMessage, ToolOverflow, Worker

BY_PREFIX: Final[dict[str, type[Model]]] = {
    "ses": Session,
    "msg": SessionMessage,
    "prt": MessagePart,
    "att": ProviderAttempt,
    "wrk": Worker,
    "ovf": ToolOverflow,
}
"""Who adds tables adds theirs."""


def address_of(text: str) -> str | None:
    """Where the page of this id is; whether it exists, and who may see it, is told there."""
    wanted = clean(text).strip()
    model = BY_PREFIX.get(wanted.partition("_")[0])
    if model is None or "/" in wanted:
        return None
    meta = model._meta  # noqa: SLF001
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[wanted])
