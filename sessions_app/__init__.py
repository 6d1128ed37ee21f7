"""The core: durable sessions, their log, their drains, and the doors to them."""
