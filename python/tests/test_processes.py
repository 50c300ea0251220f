"""What the worker reads of /proc is what everybody else reads there."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from sluice_worker import processes


def test_every_process_is_seen_also_when_the_list_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    everybody = sorted(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    assert sorted(processes._processes()) == everybody
    libc, proc, _ = processes._listing()
    monkeypatch.setattr(processes, "_listing", lambda: (libc, proc, ctypes.create_string_buffer(64)))
    assert sorted(processes._processes()) == everybody
