"""Agent, model and recovery policy: offered in the header, kept by the session, chosen without scripts too."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from sessions_app.models import Agent, Session
from tests.web import conversations
from tests.web.conftest import Page, parsed
from tests.web.conversations import Conversation


@pytest.fixture
def cook(db: None) -> Agent:
    return Agent.objects.create(name="cook", model="openai:gpt-4o-mini", recovery_policy="off")


def _chosen(page: Page, name: str) -> dict[str, str]:
    """What the button of a choice says of itself, for those that are chosen."""
    return {value: name for element, value in _buttons(page, name) if element.get("aria-pressed") == "true"}


def _buttons(page: Page, name: str) -> list[tuple[dict[str, str], str]]:
    found: dict[str, dict[str, str]] = {}
    for around, _ in page.texts:
        for element in around:
            if element.get("name") == name and "value" in element:
                found[element["value"]] = element
    return [(element, value) for value, element in found.items()]


def test_a_chat_shows_what_it_has_and_what_it_could_have(
    browser: Client, conversation: Conversation, cook: Agent
) -> None:
    page = parsed(browser.get(f"/s/{conversation.session_id}"))

    assert page.text(data_slot="agent") == "default"
    assert page.text(data_slot="model") == "demo:scripted"
    assert page.text(data_slot="recovery_policy") == "Continue"
    assert list(_chosen(page, "agent")) == ["default"]
    assert [value for _, value in _buttons(page, "recovery_policy")] == ["default", "continue", "ask", "off"]
    assert {value for _, value in _buttons(page, "agent")} == {"default", "cook"}


def test_with_one_agent_there_is_nothing_to_choose(browser: Client, conversation: Conversation) -> None:
    page = parsed(browser.get(f"/s/{conversation.session_id}"))

    assert ("data-picker", "agent") not in page.attributes
    assert ("data-picker", "model") in page.attributes


def test_a_model_without_its_key_is_shown_and_cannot_be_chosen(
    browser: Client, conversation: Conversation, settings: Any
) -> None:
    settings.ANTHROPIC_API_KEY = ""
    assert "All models" in parsed(browser.get(f"/s/{conversation.session_id}")).text(data_picker="model")
    page = parsed(browser.get(f"/s/{conversation.session_id}", {"models": ""}))
    assert list(_chosen(page, "model")) == ["demo:scripted"]

    locked = [element for element, value in _buttons(page, "model") if value.startswith("anthropic:")]
    assert locked
    assert all("disabled" in element for element in locked)
    assert "No key is set for it here." in page.text(data_picker="model")


@pytest.mark.parametrize(
    ("form", "column", "stored"),
    [
        ({"agent": "cook"}, "agent", "cook"),
        ({"model": "openai:anything"}, "model", "openai:anything"),
        ({"recovery_policy": "ask"}, "recovery_policy", "ask"),
    ],
)
def test_a_form_changes_one_thing(
    browser: Client,
    conversation: Conversation,
    cook: Agent,
    settings: Any,
    form: dict[str, str],
    column: str,
    stored: str,
) -> None:
    settings.OPENAI_API_KEY = "sk-test"
    answer = browser.post(f"/s/{conversation.session_id}/change?q=plan", form)

    assert answer["Location"] == f"/s/{conversation.session_id}?q=plan"
    assert getattr(Session.objects.get(), column) == stored


def test_a_policy_goes_back_to_the_default(browser: Client, conversation: Conversation) -> None:
    for policy in ("off", "default"):
        browser.post(f"/s/{conversation.session_id}/change", {"recovery_policy": policy})

    assert Session.objects.get().recovery_policy == ""


@pytest.mark.parametrize("form", [{"agent": "nobody"}, {"model": "no model"}])
def test_what_does_not_exist_is_refused_in_words(
    browser: Client, conversation: Conversation, form: dict[str, str]
) -> None:
    answer = browser.post(f"/s/{conversation.session_id}/change", form, follow=True)

    assert next(iter(form.values())) in parsed(answer).text(role="alert")
    assert Session.objects.get().agent == "default"


def test_a_policy_that_is_none_changes_nothing(browser: Client, conversation: Conversation) -> None:
    browser.post(f"/s/{conversation.session_id}/change", {"recovery_policy": "sometimes"})

    assert Session.objects.get().recovery_policy == ""


def test_a_new_chat_gets_what_was_chosen_before_its_first_message(
    browser: Client, cook: Agent, settings: Any
) -> None:
    settings.OPENAI_API_KEY = "sk-test"
    chosen = {"agent": "cook", "recovery_policy": "ask"}
    page = parsed(browser.get("/", chosen))
    assert page.text(data_slot="model") == "openai:gpt-4o-mini"
    assert page.text(data_slot="recovery_policy") == "Ask me"
    # A form of one picker keeps what the others have.
    assert ("value", "cook") in page.attributes

    browser.post("/", {"text": "Hello", **chosen})

    session = Session.objects.get()
    assert (session.agent, session.model, session.recovery_policy) == ("cook", "openai:gpt-4o-mini", "ask")


def test_the_policy_of_an_agent_is_shown_as_the_default(browser: Client, ann: User, cook: Agent) -> None:
    conversation = conversations.begin(ann.pk)
    browser.post(f"/s/{conversation.session_id}/change", {"agent": "cook"})

    page = parsed(browser.get(f"/s/{conversation.session_id}"))

    assert page.text(data_slot="recovery_policy") == "Stay stopped"
    assert list(_chosen(page, "recovery_policy")) == ["default"]


def test_nonsense_in_the_address_of_a_new_chat_chooses_nothing(browser: Client) -> None:
    page = parsed(browser.get("/", {"agent": "<b>", "model": "\0", "recovery_policy": "x"}))

    assert page.text(data_slot="recovery_policy") == "Continue"
    assert "b" not in page.tags
