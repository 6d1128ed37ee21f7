"""The scripted demo: a provider without key and network that obeys directives in the message."""
