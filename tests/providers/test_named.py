"""Providers and models that an administrator configured: what they are asked through, for how long, at what price."""

from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from pytest_django import Settings

from schema.attempts import Usage
from sessions_app.models import ChatModel, Provider
from sessions_app.providers import named, port, pricing, registry, transport
from sessions_app.providers.remote import RemoteProvider
from tests.providers.asking import request

pytestmark = pytest.mark.django_db


def provider(**fields: Any) -> Provider:
    defaults = {"name": "mine", "wire_format": "chat", "base_url": "http://127.0.0.1:1/v1"}
    return Provider.objects.create(**defaults | fields)


def resolved(model: str = "mine:m") -> Any:
    found, _ = registry.resolve(model)
    assert isinstance(found, RemoteProvider)
    return found


def test_a_named_provider_answers_for_its_models() -> None:
    provider()

    found, name = registry.resolve("mine:meta/llama:70b")

    assert (found.name, name) == ("mine", "meta/llama:70b")
    assert not isinstance(found, port.Askable)


@pytest.mark.parametrize(
    ("wire_format", "keeps", "path", "askable"),
    [
        ("chat", False, "/chat/completions", False),
        ("responses", False, "/responses", False),
        ("responses", True, "/responses", True),
        ("messages", False, "/v1/messages", False),
    ],
)
def test_it_speaks_the_format_that_was_chosen(
    wire_format: str, keeps: bool, path: str, askable: bool
) -> None:
    provider(wire_format=wire_format, keeps_responses=keeps)

    found = resolved()

    assert found._wire_format.path == path
    assert isinstance(found, port.Askable) == askable
    assert registry.get_provider("mine", "m").name == "mine"


def test_the_key_is_read_from_the_environment_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    provider(key_variable="MY_KEY", label="Mine")
    monkeypatch.delenv("MY_KEY", raising=False)

    with pytest.raises(registry.ProviderNotConfigured, match=r"Mine needs a key\. Set MY_KEY"):
        registry.resolve("mine:m")

    monkeypatch.setenv("MY_KEY", "sk-secret")
    assert resolved()._headers("att_1")["authorization"] == "Bearer sk-secret"
    assert "sk-secret" not in repr(vars(resolved()))


@pytest.mark.parametrize(
    "name", ["SECRET_KEY", "POSTGRES_PASSWORD", "HOLDFAST_METRICS_TOKEN", "PGPASSWORD", "django_secret"]
)
def test_a_secret_of_this_installation_is_sent_to_nobody(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "s" * 40)
    provider(key_variable=name)

    with pytest.raises(registry.ProviderNotConfigured):
        registry.resolve("mine:m")


def test_what_was_switched_off_is_neither_asked_nor_offered(settings: Settings) -> None:
    settings.OPENAI_API_KEY = "key"
    provider(enabled=False)
    ChatModel.objects.create(provider="openai", model="gpt-4.1", enabled=False)

    for model in ("mine:m", "openai:gpt-4.1"):
        with pytest.raises(registry.SwitchedOff, match="switched off by an administrator"):
            registry.resolve(model)
    names = [model.name for model in registry.available()]
    assert not [name for name in names if name.startswith("mine:")]
    assert "openai:gpt-4.1" not in names
    assert "openai:gpt-5.5" in names


def test_models_are_offered_with_what_is_known_of_them() -> None:
    provider(key_variable="A_KEY_THAT_IS_NOT_SET", label="Mine")
    ChatModel.objects.create(provider="mine", model="b", tools=False, context_tokens=8192)
    ChatModel.objects.create(
        provider="mine", model="a", label="Best", input_price=Decimal("2.5"), output_price=Decimal(10)
    )

    best, plain = (model for model in registry.available() if model.name.startswith("mine:"))

    assert (best.name, best.label, best.prices) == ("mine:a", "Best", {"input": 2.5, "output": 10.0})
    assert (plain.name, plain.label, plain.tools, plain.context_tokens) == ("mine:b", "Mine b", False, 8192)
    assert not plain.configured


def test_limits_are_those_of_the_model_and_else_the_site(settings: Settings) -> None:
    settings.OPENAI_API_KEY = "key"
    ChatModel.objects.create(
        provider="openai", model="slow", connect_seconds=3, silence_seconds=900, attempt_seconds=90
    )

    limits, others = resolved("openai:slow")._limits, resolved("openai:other")._limits

    assert (limits.connect, limits.silence, limits.attempt) == (3, 900, 90)
    assert limits.keep_alive == 900, "may say that it is alive for as long as it may be silent"
    assert limits.first_output == others.first_output
    assert others == transport.Limits()


@pytest.mark.rows_of_its_own
@pytest.mark.both_databases
@pytest.mark.parametrize(
    "fields",
    [
        {"silence_seconds": 0},
        {"attempt_seconds": -1},
        {"output_price": -1, "input_price": 1},
        {"input_price": 1},
    ],
)
def test_values_that_mean_nothing_are_refused_by_the_database(fields: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        ChatModel.objects.create(provider="openai", model="m", **fields)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/v1", "host/v1", "http://", "http://user:pw@host/v1", "http://host/v1?x=1", "http://host/v1?",
        "http://host/#a", "http://host:99999/", "http://[::1", "http://hö.example/", "http://a b/", "",
        "https://host/" + "x" * 1000,
    ],
)  # fmt: skip
def test_a_base_url_that_leads_nowhere_is_refused(url: str) -> None:
    with pytest.raises(named.BadBaseUrl):
        named.checked_base_url(url)


def test_a_base_url_is_stored_without_what_would_be_doubled() -> None:
    assert named.checked_base_url(" https://host.example:8443/v1/ ") == "https://host.example:8443/v1"


PRICES = pricing.Prices(
    input=Decimal(2), output=Decimal(8), cache_read=Decimal("0.5"), cache_write=Decimal(3)
)


@pytest.mark.parametrize(
    ("usage", "counts_cache_as_input", "cost"),
    [
        (Usage(input_tokens=1000, output_tokens=100), True, 0.0028),
        (Usage(input_tokens=1000, output_tokens=100, cache_read_tokens=400), True, 0.0022),
        (Usage(input_tokens=600, output_tokens=100, cache_read_tokens=400), False, 0.0022),
        (Usage(input_tokens=0, output_tokens=0, cache_write_tokens=100), False, 0.0003),
        (Usage(input_tokens=1, output_tokens=0), True, 0.000002),
        (Usage(input_tokens=5), True, None),
        (Usage(output_tokens=5), True, None),
        (Usage(input_tokens=1000, output_tokens=100, cost=0.5), True, 0.5),
        (Usage(input_tokens=10**40, output_tokens=1), True, None),
    ],
)
def test_cost_follows_from_usage_and_prices(
    usage: Usage, counts_cache_as_input: bool, cost: float | None
) -> None:
    assert pricing.priced(usage, PRICES, counts_cache_as_input=counts_cache_as_input).cost == cost
    plain = pricing.priced(usage, None, counts_cache_as_input=counts_cache_as_input)
    assert plain == usage


def test_a_model_without_a_cache_price_pays_for_it_as_for_input() -> None:
    prices = pricing.Prices(input=Decimal(1), output=Decimal(1))
    usage = Usage(input_tokens=100, output_tokens=0, cache_read_tokens=60)

    assert pricing.priced(usage, prices, counts_cache_as_input=True).cost == 0.0001


def test_a_model_that_cannot_call_tools_and_has_a_limit_says_so() -> None:
    ChatModel.objects.create(provider="demo", model="scripted", tools=False, max_output_tokens=7)

    traits = registry.traits("demo:scripted")

    assert (traits.tools, traits.max_output_tokens) == (False, 7)
    assert request().max_output_tokens is None
