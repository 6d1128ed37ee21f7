"""What the model is told: select the visible transcript, lower it to turns."""

from sessions_app.history.lower import lower
from sessions_app.history.notices import notice_for
from sessions_app.history.select import attempts_for_newest_prompt, select

__all__ = ["attempts_for_newest_prompt", "lower", "notice_for", "select"]
