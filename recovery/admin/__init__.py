"""Looking at claims, and deciding on unknown attempts."""

from recovery.admin import claims, deciding

__all__ = ["claims", "deciding"]
