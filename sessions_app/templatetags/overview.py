"""What the index of the admin begins with."""

from typing import Any

from django import template

register = template.Library()


@register.simple_tag(takes_context=True)
def overview(context: dict[str, Any]) -> Any:
    # The admin knows the models, which are not loaded yet when Django looks for tags.
    from sessions_app.admin import overview as shown

    return shown.sections(context["request"])
