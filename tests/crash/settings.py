"""The product's settings; only a task that died with its taker is delivered again sooner than in a minute."""

from config.settings import *  # noqa: F403
from config.settings import Q_CLUSTER

Q_CLUSTER["retry"] = 6
