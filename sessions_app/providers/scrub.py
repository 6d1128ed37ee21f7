"""The edge where a provider's text enters: what cannot be stored is dropped here, once."""

from schema import text


class Scrubber:
    """Cleans one text that arrives in fragments; a pair that was cut between two fragments is joined."""

    def __init__(self) -> None:
        self._held = ""
        self._has_dropped = False

    @property
    def has_altered(self) -> bool:
        """Whether the clean text differs from what arrived, so that a signature over it is void."""
        return self._has_dropped or bool(self._held)

    def feed(self, fragment: str) -> str:
        """The clean text of this fragment, with what was held back before; may be empty."""
        arrived = self._held + fragment
        self._held = arrived[-1:] if "\ud800" <= arrived[-1:] <= "\udbff" else ""
        arrived = arrived.removesuffix(self._held)
        clean = text.clean(arrived)
        if clean != arrived and not _is_same_once_joined(clean, arrived):
            self._has_dropped = True
        return clean


def _is_same_once_joined(clean: str, arrived: str) -> bool:
    """In UTF-16 a pair reads the same whether it was one character or two halves."""
    return clean.encode("utf-16-le") == arrived.encode("utf-16-le", "surrogatepass")
