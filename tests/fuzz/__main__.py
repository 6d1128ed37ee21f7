"""``python -m tests.fuzz [--examples N] [--seconds S] [--seed N]``: all phases, as long as you like."""

import argparse
import os
import random
import sys
import tempfile
from pathlib import Path

import django


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    from tests.fuzz import run, scene

    with (
        tempfile.TemporaryDirectory(prefix="holdfast-fuzz-") as directory,
        scene.running(Path(directory)) as made,
    ):
        done = run.schemathesis(
            made,
            phases="examples,coverage,fuzzing,stateful",
            examples=options.examples,
            seed=options.seed,
            seconds=options.seconds,
        )
    print(done.stdout, done.stderr, sep="")
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
