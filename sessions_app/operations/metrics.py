"""``/metrics``: what Prometheus is told. The same on every host: totals and states of the whole installation.

States are counted by indexes whose size is what they count. Totals are figures that every process adds to.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import PROCESS_COLLECTOR, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from sessions_app import access, figures
from sessions_app.figures import tally
from sessions_app.operations import states

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_SCHEMES: Final = ("token", "bearer")

Totals = Mapping[str, Mapping[str, float]]


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """For staff, by the web session or an API token, and for whoever has HOLDFAST_METRICS_TOKEN."""
    refused = _refusal(request)
    if refused is not None:
        return refused
    figures.store()
    registry = CollectorRegistry()
    registry.register(_Installation())
    registry.register(PROCESS_COLLECTOR)
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE)


def _refusal(request: HttpRequest) -> HttpResponse | None:
    scheme, _, secret = request.META.get("HTTP_AUTHORIZATION", "").strip().partition(" ")
    if scheme.lower() in _SCHEMES and _is_metrics_token(secret.strip()):
        return None
    user = access.find_user(secret.strip()) if scheme.lower() in _SCHEMES else _signed_in(request)
    if user is None:
        return HttpResponse(
            "Send the token of a staff user or HOLDFAST_METRICS_TOKEN, or sign in as staff.\n",
            status=401,
            content_type="text/plain",
            headers={"WWW-Authenticate": 'Token realm="holdfast"'},
        )
    if not user.is_staff:
        return HttpResponse("Metrics are for staff.\n", status=403, content_type="text/plain")
    return None


def _is_metrics_token(secret: str) -> bool:
    token = settings.HOLDFAST_METRICS_TOKEN
    return token is not None and constant_time_compare(secret, token)


def _signed_in(request: HttpRequest) -> User | None:
    user = request.user
    return None if isinstance(user, AnonymousUser) or not user.is_active else user


class _Installation(Collector):
    def collect(self) -> Iterator[Metric]:
        totals = figures.read()
        yield from _totals(totals)
        for name, described, count in states.GAUGES:
            yield GaugeMetricFamily(f"holdfast_{name}", described, value=count())


def _totals(totals: Totals) -> Iterator[Metric]:
    for make in _TOTALS:
        yield make(totals)


def _counter(
    name: str, described: str, *, of: str, labels: tuple[str, ...] = (), known: tuple[str, ...] = ("",)
) -> Callable[[Totals], Metric]:
    """Kinds that are known beforehand are told from the start, so that the first of them is an increase."""

    def make(totals: Totals) -> Metric:
        family = CounterMetricFamily(f"holdfast_{name}", described, labels=labels)
        counted = totals.get(of, {})
        for kind in sorted({*known, *counted}):
            family.add_metric(kind.split(":") if labels else (), counted.get(kind, 0.0))
        return family

    return make


def _histogram(name: str, described: str, *, of: str) -> Callable[[Totals], Metric]:
    def make(totals: Totals) -> Metric:
        counted = totals.get(of, {})
        buckets, so_far = [], 0.0
        for place, bound in enumerate([*map(str, figures.BUCKETS), "+Inf"]):
            so_far += counted.get(str(place), 0.0)
            buckets.append((bound, so_far))
        family = HistogramMetricFamily(f"holdfast_{name}", described)
        family.add_metric((), buckets, sum_value=counted.get(tally.SUM, 0.0))
        return family

    return make


_TOTALS: Final = (
    _counter(
        "prompts_admitted",
        "Prompts that were admitted, by where they came from.",
        of="prompts",
        labels=("origin",),
        known=("user", "recovery", "retry", "system"),
    ),
    _counter(
        "attempts",
        "Requests to providers that ended, by how, and by what is proved of those that failed.",
        of="attempts",
        labels=("outcome", "error_class"),
        known=(
            *("completed:", "interrupted:", "not_sent:not_sent", "failed:rejected", "failed:failed"),
            *("unknown:ambiguous", "unknown:partial"),
        ),
    ),
    _counter(
        "recoveries",
        "Recoveries of sessions whose worker died, by what followed.",
        of="recoveries",
        labels=("outcome",),
        known=("continued", "resumed", "held", "parked", "closed"),
    ),
    _counter(
        "throttled",
        "Requests that were refused because too many came, by what was exhausted.",
        of="throttled",
        labels=("limit",),
        known=("user", "token", "sign_in"),
    ),
    _histogram(
        "wake_to_dispatch_seconds",
        "From the wake of a session until its request left for the provider.",
        of="wake_to_dispatch",
    ),
    _histogram(
        "delta_delay_seconds",
        "From the arrival of live text in a worker until it was handed to the readers of a web process.",
        of="delta_delay",
    ),
)
