"""Composition only: settings, URLs and the ASGI application. Nothing here decides."""
