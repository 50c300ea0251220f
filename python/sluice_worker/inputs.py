"""The inputs of a cell: bytes from the host, parsed when a cell first uses them."""

from __future__ import annotations

import io
import json
import mmap
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any


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

    def add(self, alias: str, kind: str, fd: int, size: int) -> None:
        """Map the input that a descriptor refers to, and close the descriptor."""
        # trackfd=False: mmap would keep a copy of the descriptor open, and user code must see none but the worker's own.
        raw = mmap.mmap(fd, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ, trackfd=False) if size else b""
        os.close(fd)
        self._raw[alias] = (kind, raw)

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
            self._values[alias] = _parse(alias, *self._raw[alias])
        return self._values[alias]

    def text(self, name: str) -> str:
        """The text of an input as it was sent, for details that its value cannot hold.

        For example `json.loads(inputs.text(name), parse_float=decimal.Decimal)`.
        """
        alias = self._alias(name)
        return str(_parse(alias, "text", self._raw[alias][1]))

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
