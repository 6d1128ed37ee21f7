"""Found first on the PYTHONPATH of processes under test: what a test wants to happen inside the product."""

from tests.recovery import wrapping

wrapping.install()
