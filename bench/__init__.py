"""Measures speed: nothing here is asserted as a time, everything is printed."""
