"""A case whose process is set up for one database: started once for each of them."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack

from tests.support import servers


def run(module: str, *, databases: Iterable[str], arguments: Iterable[str], **environ: str) -> None:
    """Run ``python -m MODULE --inside DATABASE ARGUMENTS`` on a new database of each kind.

    Raises subprocess.CalledProcessError when one fails.
    """
    for database in databases:
        with ExitStack() as stack:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-bench-"))
            url = f"sqlite:///{directory}/bench.sqlite3"
            if database == "postgresql":
                url = stack.enter_context(servers.temporary_postgres_database())
            settings = {
                "DATABASE_URL": url,
                "HOLDFAST_RUN_DIR": f"{directory}/run",
                "SECRET_KEY": "a key for this bench only, of no value elsewhere",
            }
            command = [sys.executable, "-m", module, "--inside", database, *arguments]
            subprocess.run(command, check=True, env=os.environ | settings | environ)
