"""The text of a page of the web."""

import asyncio

from sessions_app.tools.declare import tool
from sessions_app.tools.port import Output
from sessions_app.tools.web import addresses, fetch, pages


@tool(effect="read", timeout_seconds=40)
async def fetch_page(url: str) -> Output:
    """Get the text of a public web page.

    Works for HTML, plain text, JSON and XML on public addresses, up to 2 MB. Scripts are not run.

    Args:
        url: The http or https URL of the page.
    """
    return await page(url)


async def page(url: str, *, network: addresses.Network = addresses.PUBLIC) -> Output:
    """The page as text, or the reason why there is none. Raises fetch.NotFetched."""
    document = await fetch.fetch(url, network=network)
    text = await asyncio.to_thread(pages.text_of, document)
    head = [document.url]
    if document.status >= 400:
        head.append(f"The server answered with status {document.status}.")
    if document.is_cut:
        head.append(f"The page is longer than {fetch.MAX_BYTES:,} bytes; this is its beginning.")
    body = text or "The page holds no text."
    return Output(content="\n".join(head) + f"\n\n{body}", is_error=document.status >= 400)
