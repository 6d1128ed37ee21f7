"""The whole API against its own document, for some seconds. ``python -m tests.fuzz`` takes longer."""

import re
from pathlib import Path

from sessions_app.api import openapi
from tests.fuzz import run, scene


def test_the_server_answers_everything_as_its_document_says(tmp_path: Path) -> None:
    with scene.running(tmp_path) as made:
        done = run.schemathesis(made, phases="examples,coverage", examples=1, seed=1, seconds=40)
        printed = made.instance.output

    assert done.returncode == 0, "\n".join(line[:500] for line in (done.stdout + done.stderr).splitlines())
    assert f"Tested: {_operations()}" in done.stdout
    assert "Traceback" not in printed, printed


def _operations() -> int:
    """How many there are to be asked for; the document itself was read."""
    asked = [
        methods
        for path, methods in openapi.document()["paths"].items()
        if not re.search(run.NEVER_ENDS, path) and not path.endswith("/schema")
    ]
    return sum(map(len, asked))
