"""People and what they look at."""

from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from tests.web import conversations
from tests.web.conversations import Conversation


@pytest.fixture
def ann(db: None) -> User:
    return User.objects.create_user("ann", password="a long enough one")


@pytest.fixture
def bob(db: None) -> User:
    return User.objects.create_user("bob", password="a long enough one")


@pytest.fixture
def browser(ann: User) -> Client:
    """Ann's browser, signed in."""
    client = Client()
    client.force_login(ann)
    return client


@pytest.fixture
def conversation(ann: User) -> Conversation:
    return conversations.begin(ann.pk, title="About logs")


class Page(HTMLParser):
    """What a browser makes of the page: tags that exist, and the text of elements by an attribute."""

    def __init__(self, response: Any) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self._open: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[list[dict[str, str]], str]] = []
        self.feed(response.content.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        if not self._in_template():
            self.tags.append(tag)
            self.attributes.extend(named.items())
        if tag not in _VOID:
            self._open.append((tag, named))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A closed element of SVG has nothing inside."""

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def _in_template(self) -> bool:
        """What a template element holds is not on the page."""
        return any(tag == "template" for tag, _ in self._open)

    def handle_data(self, data: str) -> None:
        if self._in_template():
            return
        self.texts.append(([attributes for _, attributes in self._open], data))

    def text(self, *, kind: str = "", inside: str = "", **wanted: str) -> str:
        """The text inside the elements that have these attributes (``data_slot="text"``).

        With ``kind``: of parts of this kind only; with ``inside``: only inside the element of this id.
        """
        named = {name.replace("_", "-"): value for name, value in wanted.items()}
        outer = {"data-kind": kind} if kind else {}
        return "".join(
            text
            for around, text in self.texts
            if all(_has(around, sought) for sought in (named, outer)) and _is_inside(around, inside)
        )


def _has(around: list[dict[str, str]], sought: dict[str, str]) -> bool:
    return not sought or any(sought.items() <= attributes.items() for attributes in around)


def _is_inside(around: list[dict[str, str]], identity: str) -> bool:
    return not identity or any(identity in (each.get("id"), each.get("data-part")) for each in around)


_VOID = frozenset({"meta", "link", "input", "br", "hr", "img"})


def parsed(response: HttpResponse | Any) -> Page:
    return Page(response)
