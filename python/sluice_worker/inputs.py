"""The inputs of a cell: bytes from the host, parsed when a cell first uses them."""

from __future__ import annotations

import io
import json
import mmap
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sluice.delimited.reading import Reading


class InputError(ValueError):
    """An input that cannot be parsed. The message has its alias and the reason."""

    line: int | None = None
    """The line of the cell that used the input first."""


InputError.__module__ = "builtins"  # so that tracebacks show the name without a module


class Inputs(Mapping[str, Any]):
    """The inputs by alias or local name. A value is parsed when it is first used."""

    def __init__(self) -> None:
        self._raw: dict[str, tuple[str, mmap.mmap | bytes]] = {}
        self._values: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        self._options: dict[str, Mapping[str, Any]] = {}
        self._readings: dict[str, Reading] = {}

    def add(self, alias: str, kind: str, fd: int, size: int, options: Mapping[str, Any] | None = None) -> None:
        """Map the input that a descriptor refers to, and close the descriptor.

        Of the options, `reader` says how to read a CSV-like input, and `readerExample` how to give such options.
        """
        # trackfd=False: mmap would keep a copy of the descriptor open, and user code must see none but the worker's own.
        raw = mmap.mmap(fd, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ, trackfd=False) if size else b""
        os.close(fd)
        self._raw[alias] = (kind, raw)
        self._options[alias] = options or {}
        self._readings.pop(alias, None)

    def forget(self, alias: str, namespace: dict[str, Any]) -> None:
        """Drop the value of an input that is about to be replaced, and unbind the variables that still hold that value.

        Variables that were computed from it stay.
        """
        if alias not in self._values:
            return
        old = self._values.pop(alias)
        for name in [alias, *(local for local, target in self._names.items() if target == alias)]:
            if namespace.get(name) is old:
                del namespace[name]

    def name(self, names: dict[str, str]) -> None:
        """Add local names for aliases, as a call may declare them."""
        self._names.update(names)

    def resolve(self, name: str) -> str | None:
        """The alias that a name in user code refers to, or None."""
        alias = self._names.get(name, name)
        return alias if alias in self._raw else None

    def __getitem__(self, name: str) -> Any:
        alias = self._alias(name)
        if alias not in self._values:
            self._values[alias] = self.parse(alias)
        return self._values[alias]

    def reading(self, alias: str) -> Reading | None:
        """How an input was read. None for inputs that are not CSV-like, or not read yet."""
        return self._readings.get(alias)

    def text(self, name: str) -> str:
        """The text of an input as it was sent, for details that its value cannot hold.

        For example `json.loads(inputs.text(name), parse_float=decimal.Decimal)`.
        """
        alias = self._alias(name)
        kind, raw = self._raw[alias]
        if kind in DELIMITED:
            return self._guarded(alias, kind, lambda: self._delimited_text(alias, raw))
        return str(self._guarded(alias, "text", lambda: _text(raw)))

    def all_names(self) -> list[str]:
        """Every alias and every local name of one."""
        return sorted({*self._raw, *(name for name, alias in self._names.items() if alias in self._raw)})

    def raw(self, name: str) -> tuple[str, mmap.mmap | bytes]:
        """The format of an input, and its bytes as they were sent."""
        return self._raw[self._alias(name)]

    def parse(self, name: str) -> Any:
        """The value of an input, parsed anew."""
        alias = self._alias(name)
        kind, raw = self._raw[alias]
        if kind in DELIMITED:
            return self._guarded(alias, kind, lambda: self._read_delimited(alias, kind, raw))
        return self._guarded(alias, kind, lambda: PARSERS[kind](raw))

    def _guarded[Value](self, alias: str, kind: str, parse: Callable[[], Value]) -> Value:
        try:
            return parse()
        except InputError:
            raise
        except Exception as error:
            example = self._options[alias].get("readerExample")
            why = error.sentence(example) if hasattr(error, "sentence") else error
            raise InputError(f"input {alias!r} is not readable as {kind}: {why}") from None

    def _read_delimited(self, alias: str, kind: str, raw: mmap.mmap | bytes) -> Any:
        from sluice import _cell
        from sluice.delimited.read import read_delimited

        frame, reading = read_delimited(raw, kind, self._options[alias].get("reader"))
        is_first = alias not in self._readings
        self._readings[alias] = reading
        if reading.notes and is_first:
            _cell.current().note("readings", {"alias": alias, **reading.facts()})
        return frame

    def _delimited_text(self, alias: str, raw: mmap.mmap | bytes) -> str:
        from sluice.delimited.encoding import decide_encoding, decoded
        from sluice.delimited.reading import Reading

        reading = Reading(self._options[alias].get("reader") or {})
        decide_encoding(raw, reading)
        return "".join(decoded(raw, reading))

    def _alias(self, name: str) -> str:
        alias = self.resolve(name)
        if alias is None:
            known = ", ".join(sorted({*self, *self._names})) or "none"
            raise KeyError(f"no input named {name!r}; available: {known}")
        return alias

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._raw))

    def __len__(self) -> int:
        return len(self._raw)

    def __repr__(self) -> str:
        return f"inputs({', '.join(self)})"


def _text(raw: mmap.mmap | bytes) -> str:
    text = str(raw, "utf-8")
    return text.removeprefix("\ufeff")


def _json(raw: mmap.mmap | bytes) -> Any:
    return json.loads(_text(raw))


def _jsonl(raw: mmap.mmap | bytes) -> Any:
    return [json.loads(line) for line in _text(raw).splitlines() if line.strip()]


def _parquet(raw: mmap.mmap | bytes) -> Any:
    import pandas as pd

    return pd.read_parquet(_reader(raw))


def _xlsx(raw: mmap.mmap | bytes) -> Any:
    import pandas as pd

    return pd.read_excel(_reader(raw))


def _reader(raw: mmap.mmap | bytes) -> io.BytesIO:
    return io.BytesIO(raw)


DELIMITED = ("csv", "tsv")
PARSERS: dict[str, Callable[[mmap.mmap | bytes], Any]] = {
    "json": _json,
    "jsonl": _jsonl,
    "parquet": _parquet,
    "xlsx": _xlsx,
    "text": _text,
    "bytes": bytes,
}
