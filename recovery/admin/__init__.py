"""Looking at claims, and deciding what is unknown or waits."""

from recovery.admin import attempts, calls, claims, sessions

__all__ = ["attempts", "calls", "claims", "sessions"]
