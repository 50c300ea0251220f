"""Which code names `inputs.json`."""

from __future__ import annotations

import ast

import pytest

from sluice_worker.inputs_file import line_that_names_it


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ('open("inputs.json")', 1),
        ('\nopen(b"/vercel/sandbox/inputs.json")', 2),
        ("run('cat inputs.json')", 1),
        ("open(f'{directory}/inputs.json')", 1),
        ("# inputs.json", None),
        ("open('my_inputs.json'), open('inputs.jsonl'), open('old.inputs.json')", None),
        ("inputs.json", None),
    ],
)
def test_a_text_of_the_code_names_the_file(code: str, line: int | None) -> None:
    assert line_that_names_it(ast.parse(code)) == line
