"""Checking the names that callers give."""

from schema.limits import MAX_NAME_CHARACTERS
from schema.problems import InvalidValue
from sessions_app.providers import registry


def checked_model(name: str) -> str:
    """The model name, if it has the form ``provider:model`` and the provider is known.

    Whether a key is configured is not asked here: it may come later, and a step says so when it lacks.
    """
    if len(name) > MAX_NAME_CHARACTERS:
        raise InvalidValue(
            field="model", detail=f"Model names have at most {MAX_NAME_CHARACTERS} characters."
        )
    try:
        registry.resolve(name)
    except (registry.ProviderNotConfigured, registry.LocalModelNotServed):
        return name
    except registry.ModelError as unusable:
        raise InvalidValue(field="model", detail=str(unusable)) from None
    return name
