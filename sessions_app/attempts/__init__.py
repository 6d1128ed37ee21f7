"""Facts of one physical request."""
