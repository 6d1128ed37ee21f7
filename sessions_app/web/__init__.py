"""The chat in a browser: pages, sign-in and the first run."""
