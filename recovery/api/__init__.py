"""The HTTP API of recovery: claims, and decisions on what is unknown or waits."""
