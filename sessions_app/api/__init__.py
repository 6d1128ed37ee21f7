"""The HTTP API of contract section 3: each endpoint calls one verb of the core and renders its answer."""
