"""Inputs of a cell: bytes that came over the channel, parsed the first time they are used."""

from __future__ import annotations

import io
import json
import mmap
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any


class InputError(ValueError):
    """An input could not be parsed; names the alias and what is wrong with it."""

    line: int | None = None
    """The line of the cell that first used it."""


InputError.__module__ = "builtins"  # a traceback shows it by its name alone


class Inputs(Mapping[str, Any]):
    """The tool outputs bound to this turn, by alias. A value is parsed when it is first asked for."""

    def __init__(self) -> None:
        self._raw: dict[str, tuple[str, mmap.mmap | bytes]] = {}
        self._values: dict[str, Any] = {}
        self._names: dict[str, str] = {}

    def add(self, alias: str, kind: str, fd: int, size: int) -> None:
        """Take over one input from a descriptor, which is closed."""
        # Not tracked: mmap would keep a copy of the descriptor, and none but the worker's own may be open in user code.
        raw = mmap.mmap(fd, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ, trackfd=False) if size else b""
        os.close(fd)
        self._raw[alias] = (kind, raw)

    def forget(self, alias: str, namespace: dict[str, Any]) -> None:
        """Unbind the names that still stand for an input's old value; other variables keep what was computed from it."""
        if alias not in self._values:
            return
        old = self._values.pop(alias)
        for name in [alias, *(local for local, meant in self._names.items() if meant == alias)]:
            if namespace.get(name) is old:
                del namespace[name]

    def name(self, names: dict[str, str]) -> None:
        """Local names for aliases, as a call may give them."""
        self._names.update(names)

    def resolve(self, name: str) -> str | None:
        """The alias that a name in user code stands for, if it is one."""
        alias = self._names.get(name, name)
        return alias if alias in self._raw else None

    def __getitem__(self, name: str) -> Any:
        alias = self._alias(name)
        if alias not in self._values:
            self._values[alias] = _parse(alias, *self._raw[alias])
        return self._values[alias]

    def text(self, name: str) -> str:
        """An input as it was sent, for what its value cannot hold: `json.loads(inputs.text(name), parse_float=decimal.Decimal)`."""
        alias = self._alias(name)
        return str(_parse(alias, "text", self._raw[alias][1]))

    def _alias(self, name: str) -> str:
        alias = self.resolve(name)
        if alias is None:
            known = ", ".join(sorted({*self, *self._names})) or "none"
            raise KeyError(f"no input named {name!r}; there are: {known}")
        return alias

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._raw))

    def __len__(self) -> int:
        return len(self._raw)

    def __repr__(self) -> str:
        return f"inputs({', '.join(self)})"


def _parse(alias: str, kind: str, raw: mmap.mmap | bytes) -> Any:
    try:
        return PARSERS[kind](raw)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"input {alias!r} is not readable as {kind}: {error}") from None


def _text(raw: mmap.mmap | bytes) -> str:
    text = str(raw, "utf-8")
    return text.removeprefix("\ufeff")


def _json(raw: mmap.mmap | bytes) -> Any:
    return json.loads(_text(raw))


def _csv(raw: mmap.mmap | bytes, separator: str = ",") -> Any:
    import pandas as pd

    return pd.read_csv(_reader(raw), sep=separator)


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


PARSERS: dict[str, Callable[[mmap.mmap | bytes], Any]] = {
    "json": _json,
    "jsonl": _jsonl,
    "csv": _csv,
    "tsv": lambda raw: _csv(raw, "\t"),
    "parquet": _parquet,
    "xlsx": _xlsx,
    "text": _text,
    "bytes": bytes,
}
