"""Runs the page's scripts by themselves: Chromium loads them from the source tree, without a server."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from playwright.sync_api import Browser, Page, Route

from tests.support.processes import PROJECT

_ORIGIN: Final = "http://modules.test"
_STATIC: Final = PROJECT / "sessions_app" / "static" / "holdfast"


@contextmanager
def opened(chromium: Browser) -> Iterator[Page]:
    """A page of an origin whose only files are the scripts."""
    context = chromium.new_context()
    page = context.new_page()
    page.route(f"{_ORIGIN}/**", _answer)
    page.goto(f"{_ORIGIN}/")
    try:
        yield page
    finally:
        context.close()


def _answer(route: Route) -> None:
    name = route.request.url.removeprefix(f"{_ORIGIN}/")
    if not name:
        route.fulfill(content_type="text/html", body="<!DOCTYPE html><title>modules</title>")
        return
    route.fulfill(content_type="text/javascript", body=(_STATIC / name).read_text())


def run(page: Page, module: str, body: str, argument: Any = None) -> Any:
    """Evaluate ``body`` with the module as ``m`` and the argument as ``input``."""
    source = f"async (input) => {{ const m = await import('/chat/{module}'); {body} }}"
    return page.evaluate(source, argument)
