"""What this site has of the vendors: keys and base URLs, read from the settings at call time."""

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings


@dataclass(frozen=True, kw_only=True)
class Vendor:
    """A vendor whose wire format is spoken here, by itself or by a server compatible with it."""

    name: str
    label: str
    base_url: str
    wire_format: str
    """``chat``, ``responses`` or ``messages``."""
    key_setting: str
    base_url_setting: str
    models: tuple[str, ...]
    """Suggestions for the model list; any other name may be asked for too."""


@dataclass(frozen=True, kw_only=True)
class Access:
    """How to reach a vendor, or a server compatible with it, from this site."""

    base_url: str
    key: str | None = field(repr=False)
    is_own: bool
    """Whether the base URL is a vendor's own, not that of a gateway or a server compatible with it."""
    needs_key: bool = False

    @property
    def is_configured(self) -> bool:
        return self.key is not None or not self.needs_key


VENDORS: Final = {
    vendor.name: vendor
    for vendor in (
        Vendor(
            name="openai",
            label="OpenAI",
            base_url="https://api.openai.com/v1",
            wire_format="chat",
            key_setting="OPENAI_API_KEY",
            base_url_setting="OPENAI_BASE_URL",
            models=("gpt-5.5", "gpt-5.4-mini", "gpt-4.1"),
        ),
        Vendor(
            name="openai-responses",
            label="OpenAI Responses",
            base_url="https://api.openai.com/v1",
            wire_format="responses",
            key_setting="OPENAI_API_KEY",
            base_url_setting="OPENAI_BASE_URL",
            models=("gpt-5.5", "gpt-5.4-mini"),
        ),
        Vendor(
            name="anthropic",
            label="Anthropic",
            base_url="https://api.anthropic.com",
            wire_format="messages",
            key_setting="ANTHROPIC_API_KEY",
            base_url_setting="ANTHROPIC_BASE_URL",
            models=("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"),
        ),
    )
}


OWN_HOSTS: Final = frozenset(urlsplit(vendor.base_url).hostname for vendor in VENDORS.values())


def access(vendor: Vendor) -> Access:
    """The key and base URL as the settings have them now. A vendor's own server answers nobody without a key."""
    base_url = _setting(vendor.base_url_setting) or vendor.base_url
    is_own = urlsplit(base_url).hostname == urlsplit(vendor.base_url).hostname
    return Access(
        base_url=base_url.rstrip("/"),
        key=_setting(vendor.key_setting),
        is_own=is_own,
        needs_key=is_own,
    )


def _setting(name: str) -> str | None:
    value: str | None = getattr(settings, name, None)
    return (value or "").strip() or None
