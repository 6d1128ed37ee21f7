"""What daphne does with a request before the application hears of it: no more than is needed.

By itself it stores a body of any size. Twisted below it parses every form, and writes a line of an access log
that nobody reads.
"""

import json
from typing import Any, Final

from daphne import http_protocol

from schema.limits import MAX_BODY_BYTES

LARGEST_BODY: Final = 2 * MAX_BODY_BYTES
"""Beyond what may be sent, so that what is a little too long is refused by whoever knows the address and the user."""

_PROBLEM: Final = json.dumps(
    {
        "type": "urn:holdfast:problem:body_too_large",
        "title": "Body too large",
        "status": 413,
        "detail": f"The body may have at most {MAX_BODY_BYTES} bytes.",
        "code": "body_too_large",
    }
).encode()
_REFUSAL: Final = (
    b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Type: application/problem+json\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(_PROBLEM), _PROBLEM)
)


class Request(http_protocol.WebRequest):
    """A request whose body is not stored beyond the limit: the connection is answered and closed."""

    _taken = 0
    _is_refused = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs, parsePOSTFormSubmission=False)

    def gotLength(self, length: int | None) -> None:  # noqa: N802 - Twisted's name
        is_too_long = length is not None and length > LARGEST_BODY
        super().gotLength(0 if is_too_long else length)
        if is_too_long:
            self._refuse()

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        self._taken += len(data)
        if self._is_refused:
            return
        if self._taken > LARGEST_BODY:
            self._refuse()
        else:
            super().handleContentChunk(data)

    def process(self) -> object:
        """The end may have come with what was too much. And where the site is mounted, a client does not say: daphne
        would let it, and an address would mean one thing to the router and another to Django."""
        self.requestHeaders.removeHeader(b"daphne-root-path")
        return None if self._is_refused else super().process()

    def _refuse(self) -> None:
        self._is_refused = True
        transport = self.channel.transport
        transport.write(_REFUSAL)
        transport.loseConnection()


def _log_nothing(factory: http_protocol.HTTPFactory, request: http_protocol.WebRequest) -> None:
    """The product counts requests itself, and the proxy in front of it logs them."""


def bound() -> None:
    """Make daphne use it: its factory looks the class up by this name, and offers no other way."""
    http_protocol.WebRequest = Request
    http_protocol.HTTPFactory.log = _log_nothing
