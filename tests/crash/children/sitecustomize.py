"""Python imports this at its start in every process of a house, because its directory is on their PYTHONPATH."""

from tests.crash import wrapping

wrapping.install()
