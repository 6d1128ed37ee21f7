"""Runs Schemathesis against a scene."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.fuzz.scene import Scene
from tests.support.processes import PROJECT

NEVER_ENDS: Final = "/stream$"
NOT_PROMISED: Final = "positive_data_acceptance"
"""No schema tells a cursor of a list from any other text, or an agent that exists from one that does not."""


def schemathesis(
    scene: Scene, *, phases: str, examples: int, seed: int, seconds: int
) -> subprocess.CompletedProcess[str]:
    """Ask for everything with all checks; ``seconds`` bound the whole run."""
    directory = scene.instance.directory
    arguments = [
        "run",
        scene.described_at,
        f"--header=Authorization: Token {scene.token}",
        f"--exclude-path-regex={NEVER_ENDS}",
        f"--exclude-checks={NOT_PROMISED}",
        f"--phases={phases}",
        f"--max-examples={examples}",
        f"--max-time={seconds}",
        f"--seed={seed}",
        "--generation-database=none",
        "--request-timeout=20",
        "--suppress-health-check=all",
        "--no-color",
    ]
    environ = os.environ | {
        "HOLDFAST_FUZZ_IDS": json.dumps(scene.ids),
        "SCHEMATHESIS_HOOKS": "tests.fuzz.hooks",
        "PYTHONPATH": str(PROJECT),
    }
    return subprocess.run(
        [str(Path(sys.executable).parent / "schemathesis"), *arguments],
        cwd=directory, env=environ, capture_output=True, text=True, check=False, timeout=seconds + 120,
    )  # fmt: skip
