"""New identities: the one place that asks the clock and the operating system's randomness for them."""

import os
import time
from typing import Final

from schema import ids

_ENTROPY_BYTES: Final = 10


def _new(prefix: str) -> str:
    return ids.compose(
        prefix=prefix, milliseconds=time.time_ns() // 1_000_000, entropy=os.urandom(_ENTROPY_BYTES)
    )


def new_session_id() -> ids.SessionId:
    return ids.SessionId(_new("ses"))


def new_message_id() -> ids.MessageId:
    return ids.MessageId(_new("msg"))


def new_part_id() -> ids.PartId:
    return ids.PartId(_new("prt"))


def new_attempt_id() -> ids.AttemptId:
    return ids.AttemptId(_new("att"))


def new_claim_id() -> ids.ClaimId:
    return ids.ClaimId(_new("clm"))


def new_worker_id() -> ids.WorkerId:
    return ids.WorkerId(_new("wrk"))


def new_overflow_id() -> str:
    return _new("ovf")
