"""The chat in a real Chromium."""
