"""What kind of file system a file lies on (Linux)."""

import os
from pathlib import Path
from typing import Final

_MOUNTS: Final = Path("/proc/self/mounts")
_SHARED: Final = (
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "afs",
    "ceph",
    "glusterfs",
    "lustre",
    "gfs2",
    "ocfs2",
)
_SHARED_FUSE: Final = ("fuse.sshfs", "fuse.glusterfs", "fuse.ceph-fuse", "fuse.s3fs", "fuse.rclone")


def shared_kind(path: Path, *, mounts: Path = _MOUNTS) -> str | None:
    """The kind of the file system of ``path`` if hosts may share it; None for a local one or where nothing tells."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    kind = _kind_of(os.path.realpath(path), [line.split() for line in lines])
    return kind if kind in _SHARED + _SHARED_FUSE else None


def _kind_of(path: str, mounted: list[list[str]]) -> str | None:
    """Of the last mount of the longest directory that holds the path."""
    best, kind = "", None
    for _, directory, found, *_rest in mounted:
        # The kernel writes a blank in a name as an octal escape.
        at = directory.replace("\\040", " ").rstrip("/") + "/"
        if f"{path}/".startswith(at) and len(at) >= len(best):
            best, kind = at, found
    return kind
