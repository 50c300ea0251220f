"""The examples of docs/python.md run and print what the page shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from conftest import Cell

import sluice

PAGE = (Path(__file__).parent.parent.parent / "docs" / "python.md").read_text()
FENCE = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def test_the_examples_run_and_print_what_the_page_shows(cell: Cell) -> None:
    names: dict[str, Any] = {"pd": pd, "np": np, "plt": plt, **{name: getattr(sluice, name) for name in sluice.__all__}}
    fences = FENCE.findall(PAGE)
    assert len(fences) >= 8
    for code, expected in fences:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        assert printed.getvalue() == expected
    assert "lowCoverage" not in cell.diagnostics
    assert [kind for kind, *_ in cell.artifacts] == ["image", "image", "chart"]


def test_every_helper_is_on_the_page() -> None:
    for name in sluice.__all__:
        assert f"`{name}(" in PAGE
