"""Compiles a script into one function, so that it may `return` and `await`. Everything else behaves as in a module."""

from __future__ import annotations

import ast
import builtins
import itertools
import sys
import types
from collections.abc import Callable
from typing import Any

from . import traceback_text
from .module_hint import NETWORK_MODULES

FILENAME = "<script>"
STAR = "<import *>"

#: Submodules of network modules that need no network.
PURE_SUBMODULES = frozenset({"urllib.parse"})


def compile_script(code: str) -> types.FunctionType:
    """Compile the script into a function in a fresh `__main__`. Raises SyntaxError.

    Its variables are global, so that functions and classes of the script see them as in a module.
    """
    traceback_text.remember_source(FILENAME, code)
    tree = ast.parse(code, FILENAME)
    own = _OwnScope()
    own.visit(tree)
    if own.yields is not None:
        at = own.yields
        place = (FILENAME, at.lineno, at.col_offset + 1, code.splitlines()[at.lineno - 1])
        raise SyntaxError("'yield' outside function", place)
    if len(tree.body) > 1 and ast.get_docstring(tree, clean=False) is not None:
        del tree.body[0]  # after a docstring, a future import would no longer come first
    future = list(itertools.takewhile(_is_future_import, tree.body))
    body: list[ast.stmt] = tree.body[len(future) :] or [ast.Pass()]
    if isinstance(body[-1], ast.Expr):
        body[-1] = ast.copy_location(ast.Return(body[-1].value), body[-1])
    names = _bound_names(_wrap(future, body, own.awaits))
    if names:
        body.insert(0, ast.Global(names))
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    namespace = main.__dict__
    namespace["__builtins__"] = {**vars(builtins), "__import__": _import, STAR: _star_import(namespace)}
    exec(_wrap(future, body, own.awaits), namespace)
    function: types.FunctionType = namespace.pop("<module>")
    return function


def _wrap(future: list[ast.stmt], body: list[ast.stmt], awaits: bool) -> types.CodeType:
    kind = ast.AsyncFunctionDef if awaits else ast.FunctionDef
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    function = kind(name="<module>", args=nothing, body=body, decorator_list=[], type_params=[])
    module = ast.fix_missing_locations(ast.Module([*future, function], []))
    return compile(module, FILENAME, "exec", dont_inherit=True)


def _bound_names(module: types.CodeType) -> list[str]:
    function = next(constant for constant in module.co_consts if isinstance(constant, types.CodeType))
    return sorted({*function.co_varnames, *function.co_cellvars})


def _is_future_import(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


class _OwnScope(ast.NodeTransformer):
    """Visits the top level of the script and rewrites what a function cannot contain: annotated globals and `import *`."""

    def __init__(self) -> None:
        self.awaits = False
        self.yields: ast.expr | None = None

    def visit(self, node: ast.AST) -> ast.AST:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() | ast.ClassDef():
                return node
            case ast.Await() | ast.AsyncFor() | ast.AsyncWith() | ast.comprehension(is_async=1):
                self.awaits = True
            case ast.Yield() | ast.YieldFrom():
                self.yields = self.yields or node
            case ast.AnnAssign(target=ast.Name() as target, value=value):
                bare = ast.Pass() if value is None else ast.Assign([target], value)
                node = ast.copy_location(bare, node)
            case ast.ImportFrom(module=str() as module, names=[ast.alias(name="*")], level=0):
                call = ast.Call(ast.Name(STAR, ast.Load()), [ast.Constant(module)], [])
                return ast.fix_missing_locations(ast.copy_location(ast.Expr(call), node))
        return self.generic_visit(node)


def _import(name: str, namespace: Any = None, local: Any = None, fromlist: Any = (), level: int = 0) -> Any:
    """The script's `__import__`. Network modules fail as they do in Monty; libraries can still import them."""
    if level == 0 and name.partition(".")[0] in NETWORK_MODULES and not _is_pure(name, fromlist):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return builtins.__import__(name, namespace, local, fromlist, level)


def _is_pure(name: str, fromlist: Any) -> bool:
    return name in PURE_SUBMODULES or (bool(fromlist) and all(f"{name}.{part}" in PURE_SUBMODULES for part in fromlist))


def _star_import(namespace: dict[str, Any]) -> Callable[[str], None]:
    def star_import(name: str) -> None:
        module = _import(name, namespace, None, ("*",))
        public = getattr(module, "__all__", None) or [key for key in vars(module) if not key.startswith("_")]
        namespace.update({key: getattr(module, key) for key in public})

    return star_import
