"""Finds the scratch files that a failed cell changed."""

from __future__ import annotations

import json
import os
import stat

SCRATCH = "/sandbox"
IMAGES = "/sandbox/out/images"
INPUTS_FILE = "inputs.json"
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
                status = os.lstat(path)
            except OSError:
                continue
            if status.st_ctime >= time and not _is_inputs_file(path, status):
                shown = os.path.relpath(path, SCRATCH)
                size += len(json.dumps(shown)) + 1
                if len(found) == MAX_PATHS or size > MAX_BYTES:
                    return [*sorted(found), "… and more"]
                found.append(shown)
    return sorted(found)


def _is_inputs_file(path: str, status: os.stat_result) -> bool:
    """Whether the worker wrote this file. It is read-only, unlike a file of that name that a cell wrote."""
    return path == f"{SCRATCH}/{INPUTS_FILE}" and not status.st_mode & stat.S_IWUSR
