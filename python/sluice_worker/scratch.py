"""Finds the scratch files that a failed cell changed."""

from __future__ import annotations

import os

SCRATCH = "/sandbox"
IMAGES = "/sandbox/out/images"
MAX_PATHS = 200


def changed_since(time: float) -> list[str]:
    """Paths under scratch whose content or metadata changed at or after `time`. After 200 paths, a last line says that there are more."""
    found: list[str] = []
    for directory, names, files in os.walk(SCRATCH):
        names[:] = [name for name in names if name != ".matplotlib"]
        for name in files:
            path = os.path.join(directory, name)
            try:
                changed = os.lstat(path).st_ctime >= time
            except OSError:
                continue
            if changed:
                found.append(os.path.relpath(path, SCRATCH))
                if len(found) > MAX_PATHS:
                    return [*sorted(found[:MAX_PATHS]), "… and more"]
    return sorted(found)
