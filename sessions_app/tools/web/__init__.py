"""Asking the web for a stranger: only public addresses, everything bounded."""
