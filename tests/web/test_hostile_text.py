"""Whatever a model, a user or a provider wrote arrives as text in every place that shows it."""

import json

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.web import conversations
from tests.web.conftest import Page, parsed
from tests.web.conversations import Conversation

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "<svg onload=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "![x](data:text/html,<script>alert(1)</script>)",
    '<a href="vbscript:alert(1)">x</a>',
    "</textarea></script></title></div></template><script>alert(1)</script>",
    "\"'><iframe src=//elsewhere.example></iframe>",
    "{{ settings.SECRET_KEY }}{% csrf_token %}",
    "<!--<script>",
]


def _skeleton(page: Page) -> list[str]:
    return page.tags


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_every_origin_adds_no_element_to_the_page(browser: Client, ann: User, text: str) -> None:
    harmless = parsed(browser.get(_conversation(ann, "harmless")))
    hostile = parsed(browser.get(_conversation(ann, text)))

    # The second page lists one chat more.
    assert len(_skeleton(hostile)) - len(_skeleton(harmless)) == len(_row())
    assert set(_skeleton(hostile)) == set(_skeleton(harmless))
    assert not [
        value for name, value in hostile.attributes if name in ("href", "src") and "script:" in value.lower()
    ]
    assert hostile.text(kind="text", data_slot="text") == text
    assert text in hostile.text(kind="reasoning", data_slot="text")
    assert text in hostile.text(data_slot="note")
    for slot in ("label", "input", "progress", "card-title", "card-reason", "retry-reason"):
        assert text in hostile.text(data_slot=slot).replace('\\"', '"'), slot
    assert hostile.text(kind="tool", data_slot="text").count(text) == 2
    assert text in hostile.text(data_slot="ahead") + hostile.text(data_slot="tray")
    assert text in hostile.text(data_slot="session-title")
    assert text in hostile.text(data_slot="chat-list")
    live = json.loads(hostile.text(id="live"))
    assert live["title"] == live["pending"][0]["text"] == text


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_search_found_is_text(browser: Client, ann: User, text: str) -> None:
    conversations.begin(ann.pk, title="plain").exchange(f"{text} sought", "answer")

    page = parsed(browser.get("/", {"q": "sought"}))

    snippets = [each for around, each in page.texts if around and around[-1].get("class") == "chat-snippet"]
    (snippet,) = snippets
    assert snippet.endswith("sought")
    assert not {"img", "iframe"} & set(page.tags)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_refused_draft_comes_back_as_text(browser: Client, text: str) -> None:
    answer = browser.post("/", {"session": text, "text": text})

    assert answer.status_code == 400
    assert parsed(answer).text(id="composer-text") == text
    assert repr(text[:80]) in parsed(answer).text(role="alert")


def _row() -> list[str]:
    return ["li", "a", "span", "span", "span"]


def _conversation(user: User, text: str) -> str:
    conversation = conversations.begin(user.pk, title=text)
    conversation.prompt(text)
    conversation.promote()
    message = conversation.begin_answer()
    conversation.reason(message, text)
    part = conversation.begin_text(message, index=1)
    conversation.end_text(message, part, text)
    _use_tools(conversation, message, text)
    conversation.fail(message, outcome="failed", reason="provider_error", detail=text)
    _work(conversation, text)
    conversation.prompt(text, delivery="queue")
    return f"/s/{conversation.session_id}"


def _use_tools(conversation: Conversation, message: str, text: str) -> None:
    conversation.call(message, text, given={text: text}, output=text, index=2)
    denied = conversation.begin_call(message, text, index=3, raw=text)
    conversation.ask(message, denied, {"it": text})
    conversation.answer(message, denied, "deny", reason=text)
    conversation.fail_call(message, denied, text)


def _work(conversation: Conversation, text: str) -> None:
    """An answer that still runs."""
    open_message = conversation.begin_answer()
    conversation.schedule_retry(open_message, attempt=2, at="2026-11-29T12:00:00Z", reason=text)
    running = conversation.begin_call(open_message, text)
    conversation.enter(open_message, running, {})
    conversation.progress(open_message, running, text)
    waiting = conversation.begin_call(open_message, text, index=1)
    conversation.ask(open_message, waiting, {})
