"""How a CSV-like file is read: the options, where they come from, and notes on everything that was not obvious."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

#: The encodings that can be given or recognized, and their names in Python.
CODECS = {"utf-8": "utf-8", "utf-16le": "utf-16-le", "utf-16be": "utf-16-be", "windows-1252": "cp1252"}
DELIMITERS = (",", ";", "\t", "|")
#: The delimiter of a file with one column.
ONE_COLUMN = "none"
#: A file with hundreds of columns must not fill the answer with notes.
MAX_NOTES = 40
NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars", ONE_COLUMN: "none: one column"}


class UnreadableFile(ValueError):  # noqa: N818
    """A file that is refused. `options` are the readings that could be meant; the caller shows how to choose one."""

    def __init__(self, why: str, options: list[dict[str, str]] | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.options = options or []

    def sentence(self, template: str | None) -> str:
        """The reason, and how to give the options. `{}` in the template is replaced by options in URL form."""
        if not self.options:
            return self.why
        examples = [_example(options, template) for options in self.options]
        return f"{self.why} Say how to read it: {' or '.join(examples)}"


def _example(options: dict[str, str], template: str | None) -> str:
    if template is None:
        return f"reader {json.dumps(options)}"
    return template.replace("{}", "&".join(f"{name}={quote(value, safe='')}" for name, value in options.items()))


def counted(count: int, noun: str) -> str:
    """A number with its noun: `1 row`, `2 rows`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


@dataclass
class Reading:
    """The options that a file was read with. `given` has those that the caller chose."""

    given: Mapping[str, str]
    encoding: str = "utf-8"
    delimiter: str = ","
    decimal: str = "."
    notes: list[dict[str, Any]] = field(default_factory=list)
    #: Physical lines before the header.
    skipped_lines: int = 0
    #: Bytes of the byte order mark.
    mark_bytes: int = 0
    skips_spaces: bool = False
    #: Positions of columns whose cells contain thousands separators or decimal commas.
    rewritten: set[int] = field(default_factory=set)

    def note(self, code: str, message: str, *, column: str | None = None, count: int | None = None) -> None:
        """Add one note."""
        if len(self.notes) >= MAX_NOTES:
            if self.notes[-1]["code"] != "moreNotes":
                self.notes.append(
                    {"code": "moreNotes", "message": "There are more notes, about other columns.", "count": 0}
                )
            self.notes[-1]["count"] += 1
            return
        facts = {"code": code, "column": column, "message": message, "count": count}
        self.notes.append({name: fact for name, fact in facts.items() if fact is not None})

    @property
    def codec(self) -> str:
        """The name of the encoding in Python."""
        return CODECS[self.encoding]

    @property
    def separator(self) -> str:
        """The character between cells. For one column, a character that `read_delimited` has made sure is not there."""
        return "\x1f" if self.delimiter == ONE_COLUMN else self.delimiter

    def facts(self) -> dict[str, Any]:
        """The reading as JSON values."""

        def option(name: str) -> dict[str, str]:
            return {"value": getattr(self, name), "from": "given" if name in self.given else "inferred"}

        return {name: option(name) for name in ("encoding", "delimiter", "decimal")} | {"notes": self.notes}

    def sentences(self) -> list[str]:
        """The messages of the notes."""
        return [note["message"] for note in self.notes]
