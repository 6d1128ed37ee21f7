"""Providers and models that an administrator configured: rows turned into what a request needs."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from sessions_app import environment
from sessions_app.models import ChatModel, Provider, statements
from sessions_app.models.catalog import LIMITS
from sessions_app.providers import catalog, transport
from sessions_app.providers.catalog import Access
from sessions_app.providers.pricing import Prices
from sessions_app.providers.transport import DEFAULT_LIMITS

MAX_BASE_URL: Final = 1000


class BadBaseUrl(ValueError):
    """A base URL that no request could be sent to as it is; the text says what is allowed."""


@dataclass(frozen=True, kw_only=True)
class Traits:
    """What is known of a model. Without a row: the limits of the site, no prices, all that models can do."""

    limits: transport.Limits = DEFAULT_LIMITS
    prices: Prices | None = None
    max_output_tokens: int | None = None
    context_tokens: int | None = None
    tools: bool = True
    label: str = ""
    is_enabled: bool = True


def find_provider(name: str) -> Provider | None:
    return statements.first(Provider, {"pk": name})


def providers() -> list[Provider]:
    """The providers in use."""
    return list(Provider.objects.filter(enabled=True).order_by("name"))


def traits_of(provider: str, model: str, *, otherwise: Traits) -> Traits:
    """What its row says of the model; ``otherwise`` where it has none."""
    row = statements.first(ChatModel, {"provider": provider, "model": model})
    return otherwise if row is None else _traits(row)


def all_traits() -> dict[tuple[str, str], Traits]:
    """Of every model that has a row, by provider and model, in the order of their names."""
    rows = ChatModel.objects.order_by("provider", "model")
    return {(row.provider, row.model): _traits(row) for row in rows}


def access(provider: Provider) -> Access:
    """How to reach it, with the key as the environment has it now."""
    key = environment.find_secret(provider.key_variable) if provider.key_variable else None
    host = urlsplit(provider.base_url).hostname
    return Access(
        base_url=provider.base_url.rstrip("/"),
        key=key,
        is_own=host in catalog.OWN_HOSTS,
        needs_key=bool(provider.key_variable),
    )


def checked_base_url(text: str) -> str:
    """The URL as it is stored. Raises BadBaseUrl."""
    url = text.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise BadBaseUrl("This is no URL. Write it like https://host.example/v1.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isascii():
        raise BadBaseUrl("Write an http or https URL, like https://host.example/v1.")
    if parts.username is not None or parts.password is not None:
        raise BadBaseUrl("Leave user and password out of it: the key comes from an environment variable.")
    if parts.query or parts.fragment or "?" in url or "#" in url or any(each.isspace() for each in url):
        raise BadBaseUrl("Leave out blanks and everything from ? or # on: paths are added at its end.")
    if len(url) > MAX_BASE_URL:
        raise BadBaseUrl(f"A base URL has at most {MAX_BASE_URL} characters.")
    return url


def _traits(row: ChatModel) -> Traits:
    return Traits(
        limits=_limits(row),
        prices=_prices(row),
        max_output_tokens=row.max_output_tokens,
        context_tokens=row.context_tokens,
        tools=row.tools,
        label=row.label,
        is_enabled=row.enabled,
    )


def _limits(row: ChatModel) -> transport.Limits:
    """What is stated counts. A model that may be silent for longer may also say for longer that it is alive."""
    stated = {name: getattr(row, name) for name in LIMITS}
    given = {name.removesuffix("_seconds"): value for name, value in stated.items() if value is not None}
    limits = transport.Limits(**given)
    if "keep_alive" in given or limits.silence <= limits.keep_alive:
        return limits
    return transport.Limits(**given, keep_alive=limits.silence)


def _prices(row: ChatModel) -> Prices | None:
    if row.input_price is None or row.output_price is None:
        return None
    return Prices(
        input=row.input_price,
        output=row.output_price,
        cache_read=row.cache_read_price,
        cache_write=row.cache_write_price,
    )
