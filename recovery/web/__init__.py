"""Decisions from the pages of the chat."""
