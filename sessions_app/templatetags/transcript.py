"""Filters for text that must arrive in the page as it is stored."""

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

register = template.Library()


@register.filter
def exact(text: str) -> SafeString:
    """The text, escaped, so that the parsed page holds it character for character.

    HTML parsers turn a raw carriage return into a line feed, and pages are sent without the indentation
    of their templates; as references both stay. Readers continue a text at its length, so that one lost
    character would shift everything after it.
    """
    return mark_safe(escape(text).replace("\r", "&#13;").replace("\n", "&#10;"))  # noqa: S308  escaped here


@register.filter
def code_points(text: str) -> int:
    """How long the text is in Unicode code points, as the live stream counts."""
    return len(text)
