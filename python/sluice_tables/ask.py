"""The cell that asks a table one question. The host defines `_asked` before it: alias, path, question, and the modules by name."""

import json as _json
import sys as _sys
import types as _types

_call = _json.loads(_asked)  # type: ignore[name-defined]  # noqa: F821
_tables = globals().setdefault("_tables_by_alias", {})
if "sluice_tables" not in _sys.modules:
    for _name, _source in _call["modules"].items():
        _sys.modules[_name] = _types.ModuleType(_name)
        exec(compile(_source, f"{_name}.py", "exec"), _sys.modules[_name].__dict__)
if _call["alias"] not in _tables:
    _open = _sys.modules["sluice_tables.table"].Table
    _tables[_call["alias"]] = _open(inputs, _call["alias"], _call["path"])  # type: ignore[name-defined]  # noqa: F821
set_result(_tables[_call["alias"]].answer(_call["question"]))  # type: ignore[name-defined]  # noqa: F821
