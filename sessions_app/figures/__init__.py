"""Running totals for operators: counted in memory wherever something happens, added up in one table.

A total outlives the process that counted, is the same whichever host is asked, and costs no statement where it is
counted. What a process counted in its last moments before a crash is missing: these are figures, not facts.
"""

from sessions_app.figures.counting import DELTA_DELAY, THROTTLED, WAKE_TO_DISPATCH, events
from sessions_app.figures.kept import read, store
from sessions_app.figures.tally import BUCKETS, count, observe

__all__ = [
    "BUCKETS",
    "DELTA_DELAY",
    "THROTTLED",
    "WAKE_TO_DISPATCH",
    "count",
    "events",
    "observe",
    "read",
    "store",
]
