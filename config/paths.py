"""Files and directories that the settings need to exist: the secret key, the run directory, the socket."""

import contextlib
import hashlib
import os
import secrets
import stat
import tempfile
from pathlib import Path
from typing import Final

LONGEST_SOCKET_PATH: Final = 100
"""Unix allows about 104 to 107 bytes for the address of a socket; a few stay free for a suffix."""


def make_directory(path: Path) -> None:
    """Make a directory that only this user can enter; one that exists is left as it is."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def secret_key(path: Path) -> str:
    """The key stored at ``path``; made there first if it is not.

    Processes that start at once agree on one key: it appears under its name complete or not at all.
    """
    with contextlib.suppress(FileNotFoundError):
        return _stored_key(path)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        _write_private(draft, secrets.token_urlsafe(48))
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    return _stored_key(path)


def layer_socket(run_dir: Path) -> Path:
    """Where the embedded channel layer listens: in the run directory, or if its path is too long for a
    socket, in a private directory of this user whose name follows from the run directory."""
    path = run_dir / "layer.sock"
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    name = hashlib.sha256(os.fsencode(run_dir.resolve())).hexdigest()[:16]
    directory = Path(tempfile.gettempdir()) / f"holdfast-{os.getuid()}-{name}"
    make_directory(directory)
    _require_private(directory)
    return directory / "layer.sock"


def _stored_key(path: Path) -> str:
    key = path.read_text(encoding="ascii").strip()
    if not key:
        raise OSError(f"{path} is empty. Remove it to have a new key made, or set SECRET_KEY")
    return key


def _write_private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())


def _require_private(directory: Path) -> None:
    """Refuse a directory that someone else made in the shared temporary directory."""
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise OSError(
            f"{directory} belongs to someone else or is open to others. Remove it, or shorten HOLDFAST_RUN_DIR"
        )
