"""Finds the scratch files that a failed cell changed."""

from __future__ import annotations

import json
import os

SCRATCH = "/sandbox"
IMAGES = "/sandbox/out/images"
MAX_PATHS = 200
MAX_BYTES = 32 << 10  # of all paths: the list travels in the header of a frame


def changed_since(time: float) -> list[str]:
    """Paths under scratch whose content or metadata changed at or after `time`. A last line says if there are more than fit."""
    found: list[str] = []
    size = 0
    for directory, names, files in os.walk(SCRATCH):
        names[:] = [name for name in names if name != ".matplotlib"]
        for name in files:
            path = os.path.join(directory, name)
            try:
                changed = os.lstat(path).st_ctime >= time
            except OSError:
                continue
            if changed:
                shown = os.path.relpath(path, SCRATCH)
                size += len(json.dumps(shown)) + 1
                if len(found) == MAX_PATHS or size > MAX_BYTES:
                    return [*sorted(found), "… and more"]
                found.append(shown)
    return sorted(found)
