"""The product's settings with a coordinator that only writes down what it is told, and a short lock."""

from config.settings import *  # noqa: F403
from config.settings import Q_CLUSTER

HOLDFAST_COORDINATOR = "tests.platform.fake_coordinator"
Q_CLUSTER["retry"] = 3
