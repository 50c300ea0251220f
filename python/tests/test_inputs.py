"""What happens to variables when an input is replaced."""

from __future__ import annotations

import os
from typing import Any

from sluice_worker.inputs import Inputs


def _add(inputs: Inputs, alias: str, text: str) -> None:
    fd = os.memfd_create(alias)
    os.write(fd, text.encode())
    inputs.add(alias, "json", fd, len(text))


def test_only_variables_that_still_hold_the_old_value_are_unbound() -> None:
    inputs = Inputs()
    inputs.name({"local": "prices"})
    _add(inputs, "prices", "[1]")
    old = inputs["prices"]
    namespace: dict[str, Any] = {"prices": old, "local": "assigned by a cell", "kept": old}
    inputs.forget("prices", namespace)
    _add(inputs, "prices", "[2]")
    assert namespace == {"local": "assigned by a cell", "kept": [1]}
    assert inputs["prices"] == [2]
