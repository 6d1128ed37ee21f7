"""``/healthz``: this process answers. Nothing else is asked, least of all the database."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache


@never_cache
async def alive(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok\n", content_type="text/plain")
