"""Reads a CSV-like file into a frame."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from sluice.delimited import numbers
from sluice.delimited.delimiter import decide_delimiter
from sluice.delimited.encoding import Bytes, decide_encoding
from sluice.delimited.reading import ONE_COLUMN, Reading, UnreadableFile, counted
from sluice.delimited.structure import check_rows, check_widths
from sluice.shapes.integers import INEXACT

#: Pandas 3 parses floats exactly by default and deprecates the option.
EXACT_FLOATS: dict[str, Any] = {} if int(pd.__version__.partition(".")[0]) >= 3 else {"float_precision": "round_trip"}


def read_delimited(
    raw: Bytes, kind: str, given: Mapping[str, str] | None = None, *, skips_spaces: bool = False
) -> tuple[pd.DataFrame, Reading]:
    """The table in the bytes of a file, and how it was read. `kind` is csv or tsv. Raises UnreadableFile.

    The same bytes and given options always give the same reading. Nothing is taken from a sample that the whole file
    contradicts: what cannot be decided is refused, and what is not obvious is noted.
    """
    reading = Reading(given or {}, skips_spaces=skips_spaces)
    decide_encoding(raw, reading)
    first = decide_delimiter(raw, kind, reading)
    header = first[0]
    _check_absent(raw, reading)
    _note_header(header, reading)
    frame = _parse(raw, len(header), reading)
    check_rows(raw, kind=kind, first=first[:2], rows=len(frame), reading=reading)
    numbers.decide_decimal(_evidence(frame, raw, reading), reading)
    if reading.decimal == ",":
        frame = _parse(raw, len(header), reading)
        reading.rewritten |= set(_numeric(frame))
    codes = _keep_written(frame, raw, reading)
    for at in set(range(len(frame.columns))) - codes:
        _read_text_column(frame, at, reading)
    return frame, reading


def _parse(raw: Bytes, width: int, reading: Reading, columns: Iterable[int] | None = None) -> pd.DataFrame:
    """The frame that pandas reads. With `columns`, only those, as text."""
    binary = io.BytesIO(raw)
    binary.seek(reading.mark_bytes)
    as_text: dict[str, Any] = {} if columns is None else {"usecols": sorted(columns), "dtype": str}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # the first row has more cells than the header
            frame: pd.DataFrame = pd.read_csv(
                binary,
                sep=reading.separator,
                encoding=reading.codec,
                decimal=reading.decimal,
                skiprows=reading.skipped_lines,
                skipinitialspace=reading.skips_spaces,
                index_col=False,
                keep_default_na=False,
                na_values=[""],
                low_memory=False,
                **as_text,
                **EXACT_FLOATS,
            )
            return frame
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        check_widths(raw, width, reading)
        raise UnreadableFile(f"It is not a table: {error}.") from None


def _check_absent(raw: Bytes, reading: Reading) -> None:
    separator = reading.separator
    if reading.delimiter == ONE_COLUMN and raw.find(separator.encode()) != -1:
        raise UnreadableFile(f"It contains the control character {separator!r}.")


def _note_header(header: list[str], reading: Reading) -> None:
    repeated = sorted({name for name in header if name.strip() and header.count(name) > 1})
    if repeated:
        listed = ", ".join(map(repr, repeated[:5]))
        reading.note(
            "repeatedNames", f"Several columns are named {listed}; the later ones got a number.", count=len(repeated)
        )
    unnamed = sum(not name.strip() for name in header)
    if unnamed:
        reading.note("unnamed", f"The header has no name for {counted(unnamed, 'column')}.", count=unnamed)
    if header[0].lstrip().startswith("#"):
        reading.note("comment", "The first line begins with #, as comments do. It was used as the header.")
    if numbers.all_numbers(header):
        message = "The first line has only numbers. It was used as the header, so its values are not in the table."
        reading.note("headerIsData", message)


def _numeric(frame: pd.DataFrame) -> list[int]:
    return [at for at, dtype in enumerate(frame.dtypes) if getattr(dtype, "kind", "O") in "iuf"]


def _is_text(column: Any) -> bool:
    if isinstance(column.dtype, pd.StringDtype):
        return True
    return column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "string"


def _evidence(frame: pd.DataFrame, raw: Bytes, reading: Reading) -> numbers.Evidence:
    """What all columns say about the decimal mark. Columns of floats are read again as text only if their values leave it open."""
    texts = {
        str(frame.columns[at]): numbers.trimmed_texts(frame.iloc[:, at])
        for at in range(len(frame.columns))
        if _is_text(frame.iloc[:, at])
    }
    floats = [at for at in _numeric(frame) if frame.dtypes.iloc[at].kind == "f"]
    clear = next((at for at in floats if _is_clear(frame.iloc[:, at])), None)
    evidence = numbers.collect_evidence(texts)
    if clear is not None:
        column = frame.iloc[:, clear]
        evidence.clear.setdefault(".", (str(frame.columns[clear]), str(column[_clear_cells(column)].iloc[0])))
    elif floats and raw.find(b".") != -1:
        written = _parse(raw, len(frame.columns), reading, floats)
        again = {str(name): numbers.trimmed_texts(written[name]) for name in written.columns}
        evidence = numbers.collect_evidence({**texts, **again})
    return evidence


def _clear_cells(column: Any) -> Any:
    """Which floats cannot be integers with a thousands point: 0.5, 1234.5 and 1.25, but not 1.5, which may be 1.500."""
    size = column.abs()
    whole = (size * 1000 - (size * 1000).round()).abs() < 1e-6
    return (size % 1 != 0) & np.isfinite(size) & ((size < 1) | (size >= 1000) | ~whole)


def _is_clear(column: Any) -> bool:
    return bool(_clear_cells(column).any())


def _keep_written(frame: pd.DataFrame, raw: Bytes, reading: Reading) -> set[int]:
    """Read columns again that lost digits. Returns those that stay text: codes like 007 or 12E5.

    Long integers next to gaps stay exact.
    """
    numeric = _numeric(frame)
    floats = [at for at in numeric if frame.dtypes.iloc[at].kind == "f"]
    long = {at for at in floats if (frame.iloc[:, at].abs() >= INEXACT).any()}
    suspects = set(numeric) if numeric and _may_have_codes(raw, reading) else long
    codes: set[int] = set()
    if not suspects:
        return codes
    written = _parse(raw, len(frame.columns), reading, suspects)
    for at, read in zip(sorted(suspects), written.columns, strict=True):
        name, cells = str(frame.columns[at]), numbers.trimmed_texts(written[read])
        code = numbers.first_code(cells)
        if code is not None:
            frame.isetitem(at, written[read].array)
            codes.add(at)
            reading.note("codes", f"{name!r} is text, because it has codes such as {code!r}.", column=name)
        elif at in long and (exact := numbers.to_numbers(cells, reading.decimal)) is not None:
            frame.isetitem(at, exact)
    return codes


def _may_have_codes(raw: Bytes, reading: Reading) -> bool:
    """Whether some cell is a code: digits or a point after a zero and a digit, or digits around an E. May be wrong only by saying yes."""
    if reading.encoding.startswith("utf-16"):
        return True
    ends = np.zeros(256, dtype=bool)
    ends[[*b'\n\r"', ord(reading.separator)]] = True
    data = np.frombuffer(raw, dtype=np.uint8)
    for at in range(0, len(data), _SCAN_BYTES):
        piece = data[max(0, at - 8) : at + _SCAN_BYTES + 8]
        is_digit = (piece >= 48) & (piece <= 57)
        if (is_digit[:-2] & ((piece[1:-1] | 32) == 101) & is_digit[2:]).any():
            return True
        zeros = np.flatnonzero(
            (piece[:-2] == 48) & is_digit[1:-1] & (is_digit[2:] | ends[piece[2:]] | np.isin(piece[2:], _AFTER_ZERO))
        )
        before = piece[np.maximum(zeros - 1, 0)]
        further = piece[np.maximum(zeros - 2, 0)]
        if (ends[before] | (np.isin(before, _SIGNS) & ends[further])).any():
            return True
    return False


_SCAN_BYTES = 1 << 20
_AFTER_ZERO = np.frombuffer(b" .,", dtype=np.uint8)
_SIGNS = np.frombuffer(b" +-", dtype=np.uint8)


def _read_text_column(frame: pd.DataFrame, at: int, reading: Reading) -> None:
    """Turn a column of texts into numbers if all of them are. Notes what was changed, and what was nearly a column of numbers."""
    column = frame.iloc[:, at]
    if not _is_text(column):
        return
    name = str(frame.columns[at])
    given = column.notna()
    cells = numbers.trimmed_texts(column)
    missing = int(cells.null_count - (~given).sum())
    if missing:
        words = sorted(
            set(column[given & pd.Series(cells.is_null().to_numpy(zero_copy_only=False), index=column.index)])
        )
        listed = ", ".join(repr(word.strip()) for word in words[:3])
        message = f"{counted(missing, 'cell')} of {name!r} with {listed}: read as missing."
        reading.note("missing", message, column=name, count=missing)
    may_be_numbers = numbers.may_be_numbers(cells)
    read = numbers.to_numbers(cells, reading.decimal) if may_be_numbers else None
    present = len(cells) - cells.null_count
    if read is not None:
        if numbers.has_separators(cells, reading.decimal):
            message = f"The thousands separators of {name!r} were removed."
            reading.note("thousands", message, column=name)
        reading.rewritten.add(at)
        frame.isetitem(at, read)
        return
    flags = _flags(cells) if missing and present else None
    if flags is not None:
        frame.isetitem(at, flags)
        return
    if missing:
        kept = column.where(given & pd.Series(cells.is_valid().to_numpy(zero_copy_only=False), index=column.index))
        frame.isetitem(at, kept.array if present else np.full(len(column), np.nan))
    some = numbers.count_numbers(cells, reading.decimal) if may_be_numbers else 0
    if present and some * 2 >= present:
        other = numbers.first_other(cells, reading.decimal)
        rest = f"{present - some:,} of {counted(present, 'cell')}"
        message = f"{name!r} is text, not numbers, because of {rest}, for example {other!r}."
        reading.note("notNumbers", message, column=name, count=present - some)
    elif present and (dressed := numbers.first_dressed(cells)) is not None:
        reading.note("notNumbers", f"{name!r} is text, not numbers, for example {dressed!r}.", column=name)


_TRUE, _FALSE = {"True", "TRUE", "true"}, {"False", "FALSE", "false"}


def _flags(cells: Any) -> Any | None:
    """A column of True, False and missing values, as pandas reads it."""
    values = {value: value in _TRUE for value in _TRUE | _FALSE}
    known = set(cells.drop_null().unique().to_pylist())
    if not known <= set(values):
        return None
    return pd.Series([np.nan if cell is None else values[cell] for cell in cells.to_pylist()], dtype=object)
