"""``/healthz`` and ``/readyz``: for whoever starts this process again, and for whoever sends it visitors."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache

from sessions_app.operations import readiness


@never_cache
async def alive(request: HttpRequest) -> HttpResponse:
    """This process answers. Nothing else is asked, least of all the database."""
    return HttpResponse("ok\n", content_type="text/plain")


@never_cache
async def ready(request: HttpRequest) -> HttpResponse:
    """200 when everything that an admission needs is there, else 503; the body names what is not."""
    found = await readiness.find()
    return JsonResponse(
        {"status": "ready" if found.is_ready else "not ready", **found.parts},
        status=200 if found.is_ready else 503,
    )
