"""Checks a value against `chart_schema.json`, which is generated from the host's chart schema."""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

SCHEMA_FILE = Path(__file__).parent.parent / "chart_schema.json"
TYPES: dict[str, Any] = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


class Issue(NamedTuple):
    """One thing wrong with a chart; `path` is like ``series[0].key``."""

    path: str
    message: str


@functools.cache
def chart_schema() -> dict[str, Any]:
    """The schema of a chart spec."""
    schema: dict[str, Any] = json.loads(SCHEMA_FILE.read_text())
    return schema


def check_value(value: Any, schema: dict[str, Any], path: str = "") -> list[Issue]:
    """Everything in `value` that `schema` does not allow. Supports only the keywords that our schema uses."""
    if "anyOf" in schema:
        tried = [check_value(value, option, path) for option in schema["anyOf"]]
        return [] if [] in tried else [Issue(path, f"must be {_options(schema)}, got {_shown(value)}")]
    if not _is_type(value, schema.get("type")):
        return [Issue(path, f"must be {_article(schema['type'])}, got {_shown(value)}")]
    if "enum" in schema and value not in schema["enum"]:
        return [Issue(path, f"must be one of {', '.join(schema['enum'])}, got {_shown(value)}")]
    if isinstance(value, dict):
        return _check_object(value, schema, path)
    if isinstance(value, list):
        too_many = len(value) > schema.get("maxItems", math.inf)
        return (
            [Issue(path, f"has {len(value)} entries, at most {schema['maxItems']} are allowed")]
            if too_many
            else [
                issue
                for place, item in enumerate(value)
                for issue in check_value(item, schema.get("items", {}), f"{path}[{place}]")
            ]
        )
    if isinstance(value, str) and not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", math.inf):
        return [
            Issue(
                path,
                f"must have {schema.get('minLength', 0)} to {schema.get('maxLength')} characters, has {len(value)}",
            )
        ]
    return []


def _check_object(value: dict[str, Any], schema: dict[str, Any], path: str) -> list[Issue]:
    known: dict[str, Any] = schema.get("properties", {})
    issues = [Issue(_join(path, name), "is missing") for name in schema.get("required", []) if name not in value]
    for name, item in value.items():
        if name in known:
            issues += check_value(item, known[name], _join(path, name))
        elif schema.get("additionalProperties") is False:
            issues.append(Issue(_join(path, name), f"is not a known key; known keys are {', '.join(known)}"))
    return issues


def _is_type(value: Any, name: str | None) -> bool:
    if name == "number":
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return name is None or isinstance(value, TYPES[name])


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _options(schema: dict[str, Any]) -> str:
    return " or ".join(_article(option["type"]) for option in schema["anyOf"])


def _article(name: str) -> str:
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
