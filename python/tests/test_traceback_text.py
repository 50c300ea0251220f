"""Tests of error descriptions for the author of a cell."""

from __future__ import annotations

import os
from typing import Any

import pytest

import sluice
from sluice_worker.inputs import InputError, Inputs
from sluice_worker.traceback_text import describe, remember_source

CELL = "<cell 7>"


def failure(code: str, **names: Any) -> dict[str, Any]:
    remember_source(CELL, code)
    try:
        exec(compile(code, CELL, "exec"), names)
    except Exception as error:
        assert error.__traceback__ is not None
        return describe(error.with_traceback(error.__traceback__.tb_next), CELL)  # without the frame of this function
    raise AssertionError("the code did not fail")


def broken() -> Inputs:
    inputs = Inputs()
    fd = os.memfd_create("prices")
    os.write(fd, b'{"a": ')
    inputs.add("prices", "json", fd, 6)
    return inputs


def test_an_unreadable_input_shows_the_line_that_used_it() -> None:
    found = failure("x = 1\ny = inputs['prices']", inputs=broken())
    message = "input 'prices' is not readable as json: Expecting value: line 1 column 7 (char 6)"
    assert (found["type"], found["message"], found["line"]) == ("InputError", message, 2)
    assert found["traceback"].splitlines() == [
        "Traceback (most recent call last):",
        '  File "<cell 7>", line 2, in <module>',
        "    y = inputs['prices']",
        "        ~~~~~~^^^^^^^^^^",
        f"InputError: {message}",
    ]


def test_an_input_used_by_its_name_shows_the_line_too() -> None:
    remember_source(CELL, "x = 1\ny = prices")
    error = InputError("input 'prices' is not readable as json")
    error.line = 2
    assert describe(error, CELL)["traceback"].splitlines() == [
        "Traceback (most recent call last):",
        '  File "<cell 7>", line 2, in <module>',
        "    y = prices",
        "InputError: input 'prices' is not readable as json",
    ]


def test_an_error_of_a_helper_shows_the_call_and_not_the_helpers_frames() -> None:
    found = failure("x = 1\n\nto_frame(3)", to_frame=sluice.to_frame)
    assert (found["type"], found["line"]) == ("ShapeError", 3)
    assert [line for line in found["traceback"].splitlines() if line.startswith("  File")] == [
        '  File "<cell 7>", line 3, in <module>'
    ]


def test_frames_of_other_libraries_are_kept() -> None:
    found = failure("import json\njson.loads('{')")
    assert sum(line.startswith("  File") for line in found["traceback"].splitlines()) > 1


@pytest.mark.parametrize(
    "code",
    [
        "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:9/')",
        "import socket\nsocket.create_connection(('127.0.0.1', 9))",
        "import socket\nraise socket.gaierror(-3, 'Temporary failure in name resolution')",
        "raise OSError(101, 'Network is unreachable')",
    ],
)
def test_network_errors_say_that_there_is_no_network(code: str) -> None:
    assert failure(code)["message"].endswith(
        ". The sandbox has no network: compute with data that tools have already fetched."
    )


def test_file_errors_do_not_mention_the_network() -> None:
    assert failure("open('/nowhere')")["message"] == "[Errno 2] No such file or directory: '/nowhere'"
