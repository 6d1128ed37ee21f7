"""Providers: the port, the transport that records phases, the wire formats, the scripted demo."""
