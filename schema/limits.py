"""Sizes that are refused, in one place."""

from typing import Final

MAX_PROMPT_CHARACTERS: Final = 400_000
MAX_TITLE_CHARACTERS: Final = 200
MAX_NAME_CHARACTERS: Final = 200
