"""The crash matrix: every durable commit is a place to die at, found by counting; see ``python -m tests.crash -h``."""
