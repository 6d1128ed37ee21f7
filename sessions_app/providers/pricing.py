"""What an attempt cost, from the tokens that its provider reported. Pure."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from schema.attempts import Usage
from sessions_app.providers.wire import MOST_DOLLARS

_MILLION: Final = Decimal(1_000_000)
_SMALLEST: Final = Decimal("1e-10")


@dataclass(frozen=True, kw_only=True)
class Prices:
    """US dollars per million tokens."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    """What is read from a cache or written to it costs as other input where nothing else is said."""

    def to_json(self) -> dict[str, float]:
        return {name: float(price) for name, price in vars(self).items() if price is not None}


def priced(usage: Usage, prices: Prices | None, *, counts_cache_as_input: bool) -> Usage:
    """The usage with its cost, where both are known. What the provider says it cost, it cost."""
    if prices is None or usage.cost is not None:
        return usage
    if usage.input_tokens is None or usage.output_tokens is None:
        return usage
    read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
    plain = usage.input_tokens
    if counts_cache_as_input:
        plain = max(0, plain - read - written)
    cost = (
        plain * prices.input
        + read * (prices.input if prices.cache_read is None else prices.cache_read)
        + written * (prices.input if prices.cache_write is None else prices.cache_write)
        + usage.output_tokens * prices.output
    )
    dollars = cost / _MILLION
    if dollars >= MOST_DOLLARS:
        return usage
    return usage.model_copy(update={"cost": float(dollars.quantize(_SMALLEST))})
