"""Model names lead to providers, or to an error that says what to do."""

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings

from schema.turns import AssistantTurn, CallBlock
from sessions_app.providers import call_ids, port, registry
from sessions_app.providers.demo.provider import ScriptedDemo
from sessions_app.providers.remote import RemoteProvider
from tests.providers.asking import ask, request, result

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def bare(settings: Settings) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        setattr(settings, name, None)


def test_the_demo_needs_nothing() -> None:
    provider, model = registry.resolve("demo:scripted")

    assert isinstance(provider, ScriptedDemo)
    assert model == "scripted"


def test_a_model_name_may_hold_colons_and_slashes(settings: Settings) -> None:
    settings.OPENAI_BASE_URL = "http://127.0.0.1:1/v1"

    provider, model = registry.resolve("openai:meta/llama-3:70b")

    assert isinstance(provider, RemoteProvider)
    assert provider.name == "openai"
    assert model == "meta/llama-3:70b"


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [("https://api.mistral.ai/v1", call_ids.nine("call_1")), ("https://mistral.ai.example/v1", "call_1")],
)
def test_a_server_of_mistral_gets_the_ids_it_accepts(
    settings: Settings, base_url: str, expected: str
) -> None:
    settings.OPENAI_BASE_URL = base_url
    provider, model = registry.resolve("openai:some-model")
    call = AssistantTurn(blocks=(CallBlock(call_id="call_1", name="add", input={}),))

    assert isinstance(provider, RemoteProvider)
    body: Any = provider._wire_format.encode(request(call, result("2", call_id="call_1"), model=model))
    assert body["messages"][-1]["tool_call_id"] == expected


def test_responses_are_kept_unless_the_site_says_otherwise(settings: Settings) -> None:
    settings.OPENAI_BASE_URL = "http://127.0.0.1:1/v1"

    kept, _ = registry.resolve("openai-responses:gpt")
    settings.OPENAI_RESPONSES_BACKGROUND = False
    not_kept, _ = registry.resolve("openai-responses:gpt")

    assert isinstance(kept, port.Askable)
    assert not isinstance(not_kept, port.Askable)


@pytest.mark.parametrize("name", ["", "demo", ":scripted", "demo:", "demo: ", "De mo:x", "openai"])
def test_what_is_no_model_name_is_refused_with_an_example(name: str) -> None:
    with pytest.raises(registry.MalformedModelName, match="provider:model, for example demo:scripted"):
        registry.resolve(name)


def test_an_unknown_provider_is_told_with_those_there_are() -> None:
    with pytest.raises(registry.UnknownProvider, match="demo, local, openai, openai-responses, anthropic"):
        registry.resolve("mistral:large")


def test_an_unknown_demo_model_is_refused() -> None:
    with pytest.raises(registry.UnknownModel, match="demo:scripted"):
        registry.resolve("demo:other")


@pytest.mark.parametrize(
    ("model", "variable"), [("openai:m", "OPENAI_API_KEY"), ("anthropic:m", "ANTHROPIC_API_KEY")]
)
def test_a_vendor_without_a_key_says_which_variable_to_set(model: str, variable: str) -> None:
    with pytest.raises(registry.ProviderNotConfigured, match=f"Set {variable}"):
        registry.resolve(model)


def test_settings_are_read_when_a_provider_is_asked_for(settings: Settings) -> None:
    settings.ANTHROPIC_API_KEY = "key"

    assert registry.resolve("anthropic:m")[0].name == "anthropic"


def test_the_list_of_models_tells_which_can_be_asked(settings: Settings) -> None:
    settings.OPENAI_API_KEY = "key"

    configured = {model.name.partition(":")[0]: model.configured for model in registry.available()}
    configured.pop("local", None)

    assert configured == {"demo": True, "openai": True, "openai-responses": True, "anthropic": False}
    assert registry.available()[0].name == "demo:scripted"


async def test_a_key_that_no_header_can_carry_sends_nothing(settings: Settings) -> None:
    settings.OPENAI_API_KEY = "sk-\nsecret-value"
    provider, model = await sync_to_async(registry.resolve)("openai:m")

    came = await ask(provider, request(model=model))

    assert (came.outcome, came.reason) == ("not_sent", "configuration")
    assert came.error is not None
    assert "secret" not in came.error.message


def test_the_key_is_in_no_representation(settings: Settings) -> None:
    settings.OPENAI_API_KEY = "sk-value-not-to-show"
    provider, _ = registry.resolve("openai:m")

    assert "not-to-show" not in repr(vars(provider))
