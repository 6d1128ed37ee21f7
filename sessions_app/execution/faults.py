"""Faults of this program in the middle of a step: what people and operators are told of them."""

import logging
import traceback
from pathlib import Path
from typing import Final

from sessions_app.log import Held

logger = logging.getLogger(__name__)

NOT_MADE: Final = "The request could not be made, because of a fault in this server. Its log says which."
NOT_READ: Final = (
    "The answer could not be read to its end, because of a fault in this server. Its log says which."
)


def tell(event: str, fault: Exception, held: Held) -> None:
    """Log where it happened, and not its text: that may repeat what people wrote."""
    frames = traceback.extract_tb(fault.__traceback__)
    where = " > ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames)
    logger.error(event, extra={"session": held.session_id, "error": type(fault).__name__, "where": where})
