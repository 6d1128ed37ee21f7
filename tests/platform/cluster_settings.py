"""The product's settings with a coordinator that only writes down what it is told, a short lock, one page."""

from config.settings import *  # noqa: F403
from config.settings import Q_CLUSTER, SILENCED_SYSTEM_CHECKS

ROOT_URLCONF = "tests.platform.urls"
HOLDFAST_COORDINATOR = "tests.platform.fake_coordinator"
Q_CLUSTER["retry"] = 3
SILENCED_SYSTEM_CHECKS += ["holdfast.E005"]
