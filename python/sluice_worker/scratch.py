"""Which scratch files a failed cell changed."""

from __future__ import annotations

import os

SCRATCH = "/sandbox"
IMAGES = "/sandbox/out/images"
MOST = 200


def changed_since(moment: float) -> list[str]:
    """Paths under scratch whose content, name or directory entry changed at or after that time; at most 200, then a line that says so."""
    found: list[str] = []
    for directory, names, files in os.walk(SCRATCH):
        names[:] = [name for name in names if name != ".matplotlib"]
        for name in files:
            path = os.path.join(directory, name)
            try:
                changed = os.lstat(path).st_ctime >= moment
            except OSError:
                continue
            if changed:
                found.append(os.path.relpath(path, SCRATCH))
                if len(found) > MOST:
                    return [*sorted(found[:MOST]), f"… and more than {MOST} others"]
    return sorted(found)
