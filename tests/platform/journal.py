"""A file to which processes append one line per thing that happened."""

import os
from pathlib import Path


def note(*words: str) -> None:
    """Append the words, and the pid, in one write."""
    line = " ".join([*words, str(os.getpid())]) + "\n"
    descriptor = os.open(os.environ["HOLDFAST_TEST_JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def read(path: Path) -> list[list[str]]:
    """The lines so far, each as its words; the last word is the pid."""
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []
