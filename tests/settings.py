"""The product's settings, in an environment that is the same on every machine.

``HOLDFAST_TEST_DATABASE`` chooses the database of a run: ``sqlite`` (default; a file, so that threads and
processes see it) or ``postgres``.
"""

import atexit
import os
import shutil
import tempfile

from tests.support import servers

_directory = tempfile.mkdtemp(prefix="holdfast-tests-")
atexit.register(shutil.rmtree, _directory, ignore_errors=True)

for _name in list(os.environ):
    if _name.startswith(("OPENAI_", "ANTHROPIC_")):
        del os.environ[_name]

_chosen = os.environ.get("HOLDFAST_TEST_DATABASE", "sqlite")
os.environ.update(
    {
        "DATABASE_URL": {
            "sqlite": f"sqlite:///{_directory}/unused.sqlite3",
            "postgres": servers.postgres_url(),
        }[_chosen],
        "SECRET_KEY": "a key for tests only, of no value anywhere else",
        "HOLDFAST_RUN_DIR": f"{_directory}/run",
        "HOLDFAST_STARTUP_RECOVERY": "0",
        "ALLOWED_HOSTS": "localhost,127.0.0.1,[::1],testserver",
    }
)
os.environ.pop("REDIS_URL", None)
os.environ.pop("HOLDFAST_ROLE", None)

from config.settings import *  # noqa: E402, F403
from config.settings import DATABASES  # noqa: E402

DATABASES["default"]["TEST"] = {
    "sqlite": {"NAME": f"{_directory}/test.sqlite3"},
    "postgres": {"NAME": f"test_holdfast_{os.getpid()}"},
}[_chosen]
# No test of this process cuts the power: what a commit waits for on the disk would be most of the suite's time.
DATABASES["default"]["OPTIONS"] |= {
    "sqlite": {"init_command": "PRAGMA synchronous=OFF"},
    "postgres": {"options": "-c synchronous_commit=off"},
}[_chosen]
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
