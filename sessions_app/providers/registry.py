"""Which provider answers for a model name."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings

from sessions_app.providers import anthropic, catalog, openai_chat, openai_responses, port, wire
from sessions_app.providers.background import BackgroundProvider
from sessions_app.providers.demo.provider import ScriptedDemo
from sessions_app.providers.remote import RemoteProvider

DEMO_MODEL: Final = "scripted"

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

    def __init__(self, *, provider: str, model: str) -> None:
        self.provider = provider
        self.model = model
        super().__init__(f"The provider {provider!r} has no model {model!r}. Choose {provider}:{DEMO_MODEL}.")


class ProviderNotConfigured(ModelError):
    """The vendor asks for a key, and this site has none."""

    def __init__(self, vendor: catalog.Vendor) -> None:
        self.name = vendor.name
        super().__init__(
            f"{vendor.label} needs a key. Set {vendor.key_setting} in the environment of web and "
            f"workers and start them again, or set {vendor.base_url_setting} to a compatible server "
            "that needs none."
        )


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """A model as it is offered for choice."""

    name: str
    label: str
    configured: bool


def provider_names() -> tuple[str, ...]:
    return ("demo", *catalog.VENDORS)


def get_provider(name: str) -> port.Provider:
    """The provider with this name, as the settings describe it now.

    Raises UnknownProvider, and ProviderNotConfigured when the vendor's own server is asked without a key.
    """
    if name == ScriptedDemo.name:
        return ScriptedDemo()
    vendor = catalog.VENDORS.get(name)
    if vendor is None:
        raise UnknownProvider(name)
    access = catalog.access(vendor)
    if not access.is_configured:
        raise ProviderNotConfigured(vendor)
    if name == "openai-responses" and settings.OPENAI_RESPONSES_BACKGROUND:
        return BackgroundProvider(name=name, access=access)
    return RemoteProvider(name=name, wire_format=_wire_format(name, access), access=access)


def _wire_format(name: str, access: catalog.Access) -> wire.WireFormat:
    if name == "anthropic":
        return anthropic.Messages()
    if name == "openai-responses":
        return openai_responses.Responses(is_background=False)
    # OpenAI's reasoning models refuse the old name of the limit, compatible servers may not know the new one.
    return openai_chat.ChatCompletions(
        limit_field="max_completion_tokens" if access.is_own else "max_tokens",
        is_mistral=(urlsplit(access.base_url).hostname or "").endswith("mistral.ai"),
    )


def resolve(model: str) -> tuple[port.Provider, str]:
    """The provider for ``provider:model`` and the model's name there.

    Raises MalformedModelName, UnknownProvider, UnknownModel or ProviderNotConfigured.
    """
    provider_name, colon, name = model.partition(":")
    if not colon or not name.strip() or not _PROVIDER_NAME.match(provider_name):
        raise MalformedModelName(model)
    provider = get_provider(provider_name)
    if provider_name == ScriptedDemo.name and name != DEMO_MODEL:
        raise UnknownModel(provider=provider_name, model=name)
    return provider, name


def available() -> list[ModelInfo]:
    """The models to offer; any other ``provider:model`` of a configured provider works too."""
    models = [ModelInfo(name=f"demo:{DEMO_MODEL}", label="Scripted demo", configured=True)]
    for vendor in catalog.VENDORS.values():
        configured = catalog.access(vendor).is_configured
        models += [
            ModelInfo(
                name=f"{vendor.name}:{model}",
                label=f"{vendor.label} {model}",
                configured=configured,
            )
            for model in vendor.models
        ]
    return models
