"""Schemathesis asks a running server for everything that its OpenAPI document allows, and for what it forbids."""
