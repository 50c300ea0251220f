"""Unwraps MCP tool results and content blocks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sluice.errors import ShapeError
from sluice.shapes.text import parse_text

BLOCKS = ("text", "image", "audio", "resource", "resource_link")


def unwrap_tool_result(value: Mapping[Any, Any], steps: list[str]) -> Any:
    """The content of a tool result or content block, or None when the value is neither.

    Raises
    ------
    ShapeError
        For an error of a tool, and for a result without text or data.
    """
    if is_content_block(value):
        return unwrap_content([value], steps)
    content: Any = value.get("content")
    is_result = isinstance(content, list) and bool(content) and all(_is_block(block) for block in content)
    if not is_result and "structuredContent" not in value:
        return None
    if value.get("isError") is True:
        texts = " ".join(str(block.get("text", "")) for block in content) if is_result else ""
        raise ShapeError(f"this is an error of a tool, not data: {texts[:300]}")
    if isinstance(value.get("structuredContent"), Mapping | list):
        steps.append("took structuredContent of the MCP tool result")
        return value["structuredContent"]
    return unwrap_content(content, steps) if is_result else None


def is_content_block(value: Any) -> bool:
    """Whether this is a text block or an embedded resource."""
    if not isinstance(value, Mapping):
        return False
    return (value.get("type") == "text" and isinstance(value.get("text"), str)) or (
        value.get("type") == "resource" and isinstance(value.get("resource"), Mapping)
    )


def unwrap_content(blocks: list[Any], steps: list[str]) -> Any:
    """The text of a single block, the only table among several, or the JSON of all blocks as a list."""
    texts = [text for block in blocks if is_content_block(block) and (text := _text(block))]
    if not texts:
        kinds = ", ".join(dict.fromkeys(str(block.get("type")) for block in blocks))
        raise ShapeError(f"there is no text to read a table from; the MCP content blocks are: {kinds}")
    if len(texts) == 1:
        steps.append("took the text of the MCP content block")
        return texts[0]
    tables = [text for text in texts if parse_text(text, []) is not None]
    if len(tables) == 1:
        steps.append(f"took the only one of {len(texts)} MCP content blocks that is not prose")
        return tables[0]
    try:
        parsed = [json.loads(text) for text in texts]
    except ValueError:
        return None
    steps.append(f"took the JSON of {len(texts)} MCP content blocks as a list")
    return parsed


def _is_block(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get("type") in BLOCKS


def _text(block: Mapping[Any, Any]) -> str:
    return str(block["text"] if block.get("type") == "text" else block["resource"].get("text", ""))
