/** Python that makes rows of any value, and tells what columns hold. Nothing in it is taken from data: names and paths come in as JSON. */
export const readTablePython: string = String.raw`
import json as _json
import pyarrow as _pa
import pyarrow.compute as _pc
from sluice.json_value import JsonValues as _JsonValues
from sluice.shapes.rows import frame_of_records as _frame_of_records
from sluice.shapes.integers import keep_integers as _keep_integers

class _Refusal(Exception):
    def __init__(self, code, **facts):
        self.facts = {"code": code, **facts}

def _other_sheets(alias):
    kind, raw = inputs._raw.get(alias, ("", b""))
    if kind != "xlsx": return []
    import io, openpyxl
    names = openpyxl.load_workbook(io.BytesIO(raw), read_only=True).sheetnames
    return [f"of {len(names)} sheets only the first, {names[0]!r}, is read; not read: {', '.join(map(repr, names[1:20]))}"] if len(names) > 1 else []

def _open_table(alias, path):
    try:
        notes = _other_sheets(alias)
    except Exception:
        notes = []  # whatever is wrong with it is said below
    try:
        value = inputs[alias]
    except MemoryError:
        raise
    except ValueError as error:
        return _Unreadable(str(error))
    try:
        table = _Table(value, path, notes)
    except MemoryError:
        raise
    except Exception as error:
        return _Unreadable(f"no table can be made of it: {error}")
    inputs._values.pop(alias, None)
    return table

class _Unreadable:
    def __init__(self, why):
        self.why = why
    def answer(self, question):
        return _json.dumps({"refused": {"code": "unreadable", "why": self.why}})

def _to_frame(value, path, notes):
    for key in path:
        value = value[key]
    if isinstance(value, pd.DataFrame):
        plain = isinstance(value.index, pd.RangeIndex) and value.index.name is None
        return value if plain else value.reset_index()
    if isinstance(value, str):
        lines = value.splitlines()
        return pd.DataFrame({"line": np.arange(1, len(lines) + 1), "text": pd.array(lines, dtype="str")})
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        return _frame_of_records(value)
    if isinstance(value, list) and not value:
        return pd.DataFrame()
    if isinstance(value, dict) and value and all(isinstance(row, dict) for row in value.values()):
        frame = _frame_of_records(list(value.values()))
        name = next(name for name in ("key", "_key", "__key") if name not in frame.columns)
        frame.insert(0, name, list(value))
        return frame
    if isinstance(value, (list, dict)):
        try:
            frame = to_frame(value)
            notes.extend(frame.attrs.get("to_frame", []))
            return frame if isinstance(frame.index, pd.RangeIndex) else frame.reset_index()
        except ValueError:
            pass
    if isinstance(value, list):
        return _keep_integers(pd.DataFrame({"value": pd.Series(value, dtype=object)}).infer_objects(), lambda _: value)
    if isinstance(value, dict):
        return pd.DataFrame({"key": list(value), "value": pd.Series(list(value.values()), dtype=object)})
    if isinstance(value, (bytes, bytearray)):
        raise _Refusal("bytes")
    return pd.DataFrame({"value": pd.Series([value], dtype=object)})

def _unique(names):
    taken, unique = set(), []
    for name in (_plain(str(name)) for name in names):
        other, number = name, 1
        while other in taken:
            other, number = f"{name}.{number}", number + 1
        taken.add(other)
        unique.append(other)
    return unique

def _seconds(column):
    return column.dt.total_seconds() if pd.api.types.is_timedelta64_dtype(column.dtype) else column

def _kind(column):
    types = pd.api.types
    if types.is_timedelta64_dtype(column.dtype): return "number"
    if types.is_bool_dtype(column.dtype): return "boolean"
    if types.is_integer_dtype(column.dtype): return "integer"
    if types.is_numeric_dtype(column.dtype): return "number"
    if types.is_datetime64_any_dtype(column.dtype): return "time"
    if isinstance(column.dtype, pd.StringDtype): return "text"
    if column.dtype == object:
        inferred = pd.api.types.infer_dtype(column, skipna=True)
        known = {"string": "text", "boolean": "boolean", "integer": "integer", "floating": "number", "mixed-integer-float": "number",
                 "datetime": "time", "date": "time", "datetime64": "time", "decimal": "number"}
        return known.get(inferred, "other")
    return "other"

def _plain(value):
    try:
        return _JsonValues(1 << 30).convert(value)
    except Exception:
        if isinstance(value, list): return [_plain(cell) for cell in value]
        return f"<{len(value)} bytes>" if isinstance(value, (bytes, bytearray, memoryview)) else str(value)

def _show(value, most=80):
    value = _plain(value)
    return value[:most] + "…" if isinstance(value, str) and len(value) > most else value

def _as_text(column):
    if _kind(column) == "text" and column.dtype != object:
        return _pa.array(column, from_pandas=True).cast(_pa.large_string())
    if _kind(column) in ("integer", "number", "boolean") and column.dtype != object:
        return _pa.array(column, from_pandas=True).cast(_pa.large_string())
    def say(cell):
        cell = _plain(cell)
        return cell if cell is None or isinstance(cell, str) else _json.dumps(cell, ensure_ascii=False)
    return _pa.array([say(cell) for cell in column], type=_pa.large_string())

def _matches(column, words, whole_start=False):
    test = _pc.starts_with if whole_start else _pc.match_substring
    found = test(_as_text(column), words, ignore_case=True)
    return np.asarray(_pc.fill_null(found, False).to_numpy(zero_copy_only=False), dtype=bool)
`;
