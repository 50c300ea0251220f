"""Reads the corpus of JSON files that the TypeScript tests also use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

CORPUS = Path(__file__).parent.parent.parent / "corpus"


def cases(folder: str) -> list[Any]:
    """Every case of a folder, as pytest parameters with their titles."""
    return [
        pytest.param(case, id=f"{file.stem}: {case['title']}")
        for file in sorted((CORPUS / folder).glob("*.json"))
        for case in json.loads(file.read_text())
    ]


def read(name: str) -> Any:
    return json.loads((CORPUS / name).read_text())
