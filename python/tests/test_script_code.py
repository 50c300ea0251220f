"""Tests of compiling a script into one function."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from sluice_worker.script_code import compile_script


@pytest.fixture(autouse=True)
def _own_main() -> Iterator[None]:
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


def value_of(code: str) -> Any:
    value = compile_script(code)()
    return asyncio.run(value) if asyncio.iscoroutine(value) else value


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("1 + 1", 2),
        ("x = 1", None),
        ("", None),
        ("'only a text'", "only a text"),
        ("return 3\n4", 3),
        ("if True:\n    return 5", 5),
        ("x: int = 1\ny: str\nx", 1),
        ("def f():\n    return g()\ndef g():\n    return 7\nf()", 7),
        ("n = 0\ndef add():\n    global n\n    n += 1\nadd()\nn", 1),
        ("class A:\n    x: int = 1\n    y = x + 1\nA.y", 2),
        ("class A:\n    pass\ndef f(): pass\n[A.__qualname__, f.__qualname__, A.__module__]", ["A", "f", "__main__"]),
        ("x = 1\n[x for x in range(3)]\nx", 1),
        ("[(y := n) for n in range(3)]\ny", 2),
        ("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    name = type(e).__name__\nname", "ZeroDivisionError"),
        ("from math import *\nfloor(2.5)", 2),
        ("import os.path as p\np.join('a', 'b')", "a/b"),
        ("from __future__ import annotations\ndef f(x: Unknown): return x\nf(1)", 1),
        ("'''about'''\nfrom __future__ import annotations\n1", 1),
        ("match [1, 2]:\n    case [a, *rest]:\n        pass\n[a, rest]", [1, [2]]),
        ("type Number = int\nNumber.__value__ is int", True),
        ("with open('/dev/null') as f:\n    pass\nf.closed", True),
        ("async def f():\n    return 1\nawait f()", 1),
        ("async def f():\n    yield 1\n[x async for x in f()]", [1]),
        ("def f():\n    yield 1\nlist(f())", [1]),
        ("(lambda: (yield))().__class__.__name__", "generator"),
    ],
)
def test_a_script_behaves_like_a_module_that_may_return_and_await(code: str, value: object) -> None:
    assert value_of(code) == value


@pytest.mark.parametrize(
    ("code", "message", "line"),
    [
        ("x = (", "'(' was never closed", 1),
        ("x = 1\nyield x", "'yield' outside function", 2),
        ("break", "'break' outside loop", 1),
        ("def f():\n    nonlocal x\nx = 1", "no binding for nonlocal 'x' found", 2),
        ("def f():\n    await g()", "'await' outside async function", 2),
        ("x = 1\nfrom nowhere import (", "'(' was never closed", 2),
    ],
)
def test_invalid_code_is_a_syntax_error_with_its_line(code: str, message: str, line: int) -> None:
    with pytest.raises(SyntaxError) as caught:
        compile_script(code)
    assert (caught.value.msg, caught.value.lineno) == (message, line)


@pytest.mark.parametrize(
    "code", ["import socket", "import urllib", "import urllib.request", "from http import client", "__import__('ssl')"]
)
def test_network_modules_cannot_be_imported(code: str) -> None:
    with pytest.raises(ModuleNotFoundError, match="No module named"):
        value_of(code)


def test_a_submodule_that_needs_no_network_can_be_imported() -> None:
    assert value_of("from urllib.parse import quote\nfrom urllib import parse\nparse.quote(quote(' '))") == "%2520"
