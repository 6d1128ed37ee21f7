"""The product's settings; only a task that died with its taker is delivered again sooner than in a minute."""

from config.settings import *  # noqa: F403
from config.settings import Q_CLUSTER, SILENCED_SYSTEM_CHECKS

Q_CLUSTER["retry"] = 6
SILENCED_SYSTEM_CHECKS += ["holdfast.E005"]
