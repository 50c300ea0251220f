"""Recognizes how numbers are written: with a decimal point or comma, with thousands separators, with words for missing values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from sluice.delimited.reading import ONE_COLUMN, Reading, UnreadableFile
from sluice.shapes.integers import INEXACT

MISSING_WORDS = [
    *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
]
"""Texts that pandas reads as missing values."""
TITLES = {".": "points", ",": "commas"}
_OTHER = {".": ",", ",": "."}
_GROUPS = {mark: rf"[1-9]\d{{0,2}}(?:\{other}\d{{3}})+" for mark, other in _OTHER.items()}
"""An integer part with thousands separators, by decimal mark."""
_PATTERNS = {
    mark: rf"^[+-]?(?:(?:0|[1-9]\d*|{_GROUPS[mark]})(?:\{mark}\d*)?|\{mark}\d+)(?:[eE][+-]?\d+)?$" for mark in _OTHER
}
"""Numbers by decimal mark. Leading zeros, as in codes, are not numbers."""
_INTEGER = r"^[+-]?\d+$"
_LOOSE = r"^[+-]?[0-9.,]+(?:[eE][+-]?[0-9]+)?$"
"""What every number matches, in either notation."""


_MONEY = r"(?:[$€£¥₹]|USD|EUR|GBP|CHF|JPY)"
_DRESSED = rf"^[(+\-−]?\s?{_MONEY}?\s?[+\-−]?[0-9][0-9.,'’ \x{{00a0}}\x{{202f}}]*\s?(?:%|‰|{_MONEY})?[)\-−]?$"
"""What a number with additions looks like. Plain numbers match, too."""


@dataclass
class Evidence:
    """For each decimal mark, a number that only it explains; and a number that both explain, by the mark that it contains."""

    clear: dict[str, tuple[str, str]]
    ambiguous: dict[str, tuple[str, str]]


def trimmed_texts(column: Any) -> Any:
    """The cells of a text column as an Arrow array, without white space at the ends. Words for missing values are null."""
    cells = pc.utf8_trim_whitespace(pa.array(column, type=pa.large_string(), from_pandas=True))
    missing = pc.is_in(cells, value_set=pa.array(MISSING_WORDS, type=pa.large_string()))
    return pc.if_else(missing, None, cells)


def collect_evidence(texts: dict[str, Any]) -> Evidence:
    """What columns of text say about the decimal mark. Columns in which fewer than half of the cells are numbers do not count."""
    evidence = Evidence({}, {})
    for name, cells in texts.items():
        present = cells.drop_null()
        loose = present.filter(_matches(present, _LOOSE))
        if len(loose) == 0 or len(loose) * 2 < len(present):
            continue
        by_comma = _matches(loose, _PATTERNS[","])
        others, with_comma = loose.filter(pc.invert(by_comma)), loose.filter(by_comma)
        _keep_first(evidence.clear, ".", name, others, _matches(others, _PATTERNS["."]))
        if "," in evidence.clear:
            continue
        by_both = _matches(with_comma, _PATTERNS["."])
        _keep_first(evidence.clear, ",", name, with_comma, pc.invert(by_both))
        open_ones = with_comma.filter(by_both)
        for mark in _OTHER:
            _keep_first(evidence.ambiguous, mark, name, open_ones, pc.match_substring(open_ones, mark))
    return evidence


def decide_decimal(evidence: Evidence, reading: Reading) -> None:
    """Set the decimal mark of a reading. Raises UnreadableFile if numbers can be read in two ways."""
    if "decimal" in reading.given:
        reading.decimal = reading.given["decimal"]
        return
    clear, ambiguous = evidence.clear, evidence.ambiguous
    options = [{"decimal": ","}, {"decimal": "."}]
    if len(clear) == 2:
        shown = " and ".join(f"{text!r} in {name!r}" for name, text in clear.values())
        raise UnreadableFile(f"Its numbers are written in two ways: {shown}.", options)
    if "," in clear:
        reading.decimal = ","
        name, text = clear[","]
        reading.note("decimal", f"Numbers have decimal commas, for example {text!r} in {name!r}.")
        return
    if "." in clear or not ambiguous:
        return
    if list(ambiguous) == ["."] and reading.delimiter in (",", ONE_COLUMN):
        name, text = ambiguous["."]
        meant = text.replace(".", "")
        message = f"Points were read as decimal points. If {text!r} in {name!r} means {meant}, set the option decimal to a comma."
        reading.note("decimalPoints", message)
        return
    name, text = next(iter(ambiguous.values()))
    mark = "," if "," in text else "."
    meant = text.replace(mark, "")
    raise UnreadableFile(f"{text!r} in {name!r} can mean {meant} or {text.replace(mark, '.')}.", options)


def to_numbers(cells: Any, decimal: str) -> Any | None:
    """The numbers in an array of texts, as a column. None if some text is not a number."""
    present = cells.drop_null()
    if len(present) == 0 or not pc.all(_matches(present, _PATTERNS[decimal])).as_py():
        return None
    plain = pc.replace_substring(cells, _OTHER[decimal], "")
    if decimal == ",":
        plain = pc.replace_substring(plain, ",", ".")
    plain = pc.replace_substring_regex(plain, r"^\+", "")
    if pc.all(_matches(plain.drop_null(), _INTEGER)).as_py():
        return _to_integers(plain)
    return pd.Series(plain.to_pandas()).astype("float64")


def with_point(text: str, decimal: str) -> str:
    """A number with a decimal point and without thousands separators. Any other text is returned unchanged."""
    if re.fullmatch(_PATTERNS[decimal], text.strip()) is None:
        return text
    return text.strip().replace(_OTHER[decimal], "").replace(",", ".")


def may_be_numbers(cells: Any) -> bool:
    """Whether some text looks like a number."""
    return bool(pc.any(_matches(cells, _LOOSE)).as_py())


def has_separators(cells: Any, decimal: str) -> bool:
    """Whether some number has a thousands separator."""
    return bool(pc.any(pc.match_substring(cells, _OTHER[decimal])).as_py())


def count_numbers(cells: Any, decimal: str) -> int:
    """How many of the texts are numbers."""
    return int(pc.sum(_matches(cells.drop_null(), _PATTERNS[decimal])).as_py() or 0)


def first_dressed(cells: Any) -> str | None:
    """The first number with additions, if at least half of the texts are such numbers.

    Additions are signs of percent or currency, spaces or apostrophes between thousands, brackets, a minus at the end.
    """
    present = cells.drop_null()
    dressed = present.filter(_matches(present, _DRESSED))
    bare = pc.replace_substring_regex(dressed, r"[^0-9.,eE+-]", "")
    is_dotted = _matches(dressed, r"^[0-9.]+$")  # as dates and versions are
    numbers = dressed.filter(pc.and_not(_matches(bare, r"^[+-]?[0-9.,]+-?$"), is_dotted))
    return str(numbers[0].as_py()) if len(numbers) and len(numbers) * 2 >= len(present) else None


def first_other(cells: Any, decimal: str) -> str:
    """The first text that is not a number."""
    present = cells.drop_null()
    others = present.filter(pc.invert(_matches(present, _PATTERNS[decimal])))
    return str(others[0].as_py())


def first_code(cells: Any) -> str | None:
    """The first code in a column of numbers: one with a leading zero, such as the date 01.02, or one like 12E5 if all are like that."""
    present = cells.drop_null()
    zeros = present.filter(_matches(present, r"^[+-]?0\d+(?:\.\d*)?$"))
    if len(zeros):
        return str(zeros[0].as_py())
    if len(present) and pc.all(_matches(present, r"^\d+[eE]\d+$")).as_py():
        return str(present[0].as_py())
    return None


def all_numbers(names: list[str]) -> bool:
    """Whether all names of a header are numbers."""
    cells = pa.array([name.strip() for name in names], type=pa.large_string())
    return any(pc.all(_matches(cells, pattern)).as_py() for pattern in _PATTERNS.values())


def _to_integers(cells: Any) -> Any:
    try:
        integers = pc.cast(cells, pa.int64())
    except pa.ArrowInvalid:  # beyond 64 bits
        return pd.Series([None if cell is None else int(cell) for cell in cells.to_pylist()], dtype=object)
    if integers.null_count == 0:
        return integers.to_pandas()
    largest = pc.max(pc.abs(integers)).as_py()
    return pd.Series(pd.array(integers.to_pylist(), dtype="Int64")) if largest >= INEXACT else integers.to_pandas()


def _matches(cells: Any, pattern: str) -> Any:
    return pc.match_substring_regex(cells, pattern)


def _keep_first(found: dict[str, tuple[str, str]], mark: str, name: str, cells: Any, mask: Any) -> None:
    if mark not in found and pc.any(mask).as_py():
        found[mark] = (name, str(cells.filter(mask)[0].as_py()))
