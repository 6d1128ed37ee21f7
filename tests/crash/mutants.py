"""Faults for the product, applied in memory in its processes, to show that the matrix sees each of them."""

import importlib
import time
from collections.abc import Callable
from typing import Any, Final

SLOW_DISCOVERY: Final = "slow-discovery"
"""No fault: everybody who discovers an orphan waits, so that others discover it too."""
_MEANWHILE_SECONDS: Final = 4.0


def apply(name: str) -> None:
    """Break the product in this process as named."""
    _MUTANTS[name]()


def _no_fence() -> None:
    """Who lost a session writes on."""
    transaction = importlib.import_module("sessions_app.log.transaction")
    locked: Callable[..., Any] = transaction._locked
    _put(transaction, "_locked", lambda session_id, held: locked(session_id, None))
    _put(importlib.import_module("sessions_app.ownership"), "verify", lambda *, held: None)
    _put(importlib.import_module("sessions_app.execution.stages"), "to_cancel", lambda *, held: set())


def _slow_discovery() -> None:
    discovery = importlib.import_module("recovery.discovery")
    find: Callable[..., Any] = discovery.find_orphans

    def slowly(**arguments: Any) -> Any:
        found = find(**arguments)
        if found:
            time.sleep(_MEANWHILE_SECONDS)
        return found

    _put(discovery, "find_orphans", slowly)


def _no_claim_guards() -> None:
    """Whoever discovered an orphan claims it; the constraints are taken off the table by ``loosen``."""
    _slow_discovery()
    recover = importlib.import_module("recovery.recover")
    _put(recover, "_require_orphan", lambda *arguments, **named: "proved")


def _no_write_ahead() -> None:
    """A tool is entered without its call being durable."""
    settling = importlib.import_module("sessions_app.execution.settling")
    _put(settling, "_call", lambda *arguments: None)


def _no_owed_run() -> None:
    """A promoted prompt is owed nothing."""
    promote = importlib.import_module("sessions_app.inbox.promote")
    _put(promote, "owe", lambda *arguments, **named: None)


def _no_inquiry() -> None:
    """A provider that could tell what became of an attempt is not asked."""
    plan = importlib.import_module("recovery.plan")
    _put(plan, "_find_inquiry", lambda *arguments: "")


def _put(module: Any, name: str, fault: Callable[..., Any]) -> None:
    """A fault that fits nothing any more would be seen by nobody."""
    getattr(module, name)
    setattr(module, name, fault)


_MUTANTS: Final[dict[str, Callable[[], None]]] = {
    SLOW_DISCOVERY: _slow_discovery,
    "fence": _no_fence,
    "claim": _no_claim_guards,
    "write-ahead": _no_write_ahead,
    "owed-run": _no_owed_run,
    "inquiry": _no_inquiry,
}
