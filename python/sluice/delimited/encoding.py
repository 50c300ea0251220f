"""Recognizes the encoding of a text file from all of its bytes."""

from __future__ import annotations

import codecs
import mmap
import re
from collections.abc import Iterator

from sluice.delimited.reading import CODECS, Reading, UnreadableFile

Bytes = bytes | mmap.mmap

CHUNK_BYTES = 1 << 22
_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "utf-16le"),
    (b"\xfe\xff", "utf-16be"),
)
_TITLES = {"utf-8": "UTF-8", "utf-16le": "UTF-16 LE", "utf-16be": "UTF-16 BE", "windows-1252": "Windows-1252"}
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_HIGH = re.compile(rb"[\x80-\xff]")
_HIGH_RUN = re.compile(rb"[\x80-\xff]{3,}")
_SYMBOL_IN_WORD = re.compile(
    rb"[A-Za-z\x8a\x8c\x8e\x9a\x9c\x9e\x9f\xc0-\xff][\xa1-\xa9\xab\xac\xae-\xb3\xb6\xb8\xb9\xbb-\xbf][A-Za-z\xc0-\xff]"
)
"""Symbols such as `³` between letters: letters of another encoding. Ordinals, degrees, accents and dots may be there."""
_WORD = re.compile(rb"[^\s,;|\t\"]{0,20}[\x80-\xff][^\s,;|\t\"]{0,20}")
_NOT_ASCII = re.compile("[^\x00-\x7f\udc80-\udcff]")


def decide_encoding(raw: Bytes, reading: Reading) -> None:
    """Set the encoding of a reading: given, by the byte order mark, or by the bytes. Raises UnreadableFile."""
    mark, marked = next(((mark, name) for mark, name in _MARKS if raw[: len(mark)] == mark), (b"", None))
    if marked == "UTF-32":
        raise UnreadableFile("It is UTF-32, which is not supported. Save it as UTF-8.")
    given = reading.given.get("encoding")
    if given is not None and marked not in (None, given):
        raise UnreadableFile(f"It starts with the byte order mark of {_TITLES[marked]}, so it is not {_TITLES[given]}.")
    reading.mark_bytes = len(mark)
    reading.encoding = given or marked or _recognize(raw, reading)
    at = _first_error(raw, reading)
    if at is not None:
        where = f"byte 0x{raw[at]:02x} in line {line_of(raw, at, reading)}"
        raise UnreadableFile(f"It is not {_TITLES[reading.encoding]} text: {where} does not belong to it.")
    if given is None and reading.encoding.startswith("utf-16"):
        how = "by its byte order mark" if mark else "by the zero bytes of its characters, without a byte order mark"
        reading.note("encoding", f"The encoding is {_TITLES[reading.encoding]}, recognized {how}.")


def decoded(raw: Bytes, reading: Reading, errors: str = "strict") -> Iterator[str]:
    """The text in pieces, without the byte order mark."""
    decoder = codecs.getincrementaldecoder(reading.codec)(errors)
    for at in range(reading.mark_bytes, len(raw), CHUNK_BYTES):
        yield decoder.decode(raw[at : at + CHUNK_BYTES], final=at + CHUNK_BYTES >= len(raw))


def line_of(raw: Bytes, at: int, reading: Reading) -> int:
    """The number of the line that has the byte at a place."""
    feed = "\n".encode(reading.codec)
    return raw[:at].count(feed) + 1


def _first_error(raw: Bytes, reading: Reading) -> int | None:
    """The place of the first byte that is not text in the encoding: an invalid byte or a NUL character."""
    decoder = codecs.getincrementaldecoder(reading.codec)("strict")
    for at in range(reading.mark_bytes, len(raw), CHUNK_BYTES):
        chunk = raw[at : at + CHUNK_BYTES]
        try:
            text = decoder.decode(chunk, final=at + CHUNK_BYTES >= len(raw))
        except UnicodeDecodeError as error:
            return at - (len(error.object) - len(chunk)) + error.start
        if "\0" in text:
            return at + len(text[: text.index("\0")].encode(reading.codec))
    return None


def _recognize(raw: Bytes, reading: Reading) -> str:
    if raw.find(b"\0") != -1:
        return _recognize_utf16(raw)
    reading.encoding = "utf-8"
    at = _first_error(raw, reading)
    if at is None:
        return "utf-8"
    _refuse_other_encodings(raw, at, reading)
    _, word = _example(raw)
    message = (
        f"It is not UTF-8. It was read as Windows-1252 (Western European), for example {word!r} in line "
        f"{line_of(raw, at, reading)}. If this is wrong, convert the file to UTF-8."
    )
    reading.note("encoding", message)
    return "windows-1252"


def _recognize_utf16(raw: Bytes) -> str:
    """UTF-16 by its zero bytes, which all are at odd or all at even places. Raises UnreadableFile."""
    even = odd = 0
    for at in range(0, len(raw), CHUNK_BYTES):
        chunk = raw[at : at + CHUNK_BYTES]
        even, odd = even + chunk[0::2].count(0), odd + chunk[1::2].count(0)
    zeros, name = (even, "utf-16be") if even else (odd, "utf-16le")
    is_one_sided = (even == 0) != (odd == 0) and len(raw) % 2 == 0
    is_ascii = all(raw[at : at + CHUNK_BYTES].isascii() for at in range(0, len(raw), CHUNK_BYTES))
    is_dense = zeros * 5 >= len(raw) * 2 if is_ascii else zeros * 20 >= len(raw)  # other letters have few zero bytes
    if is_one_sided and is_dense and _has_line(raw, name):
        return name
    options = [{"encoding": name}] if is_one_sided else []
    at = raw.find(b"\0")
    why = f"It contains zero bytes, the first at byte {at + 1}, as binary files do, and is not clearly UTF-16."
    raise UnreadableFile(why, options)


def _has_line(raw: Bytes, name: str) -> bool:
    """Whether a line ends in the first megabyte."""
    return "\n" in raw[: 1 << 20].decode(CODECS[name], "replace").replace("\r", "\n")


def _refuse_other_encodings(raw: Bytes, at: int, reading: Reading) -> None:
    """Raise UnreadableFile for bytes that are neither UTF-8 nor clearly Windows-1252."""
    line = line_of(raw, at, reading)
    options = [{"encoding": "windows-1252"}]
    if any(_NOT_ASCII.search(text) for text in decoded(raw, reading, "surrogateescape")):
        why = f"It has characters in UTF-8 and also bytes that are not UTF-8, the first in line {line}. Convert it to UTF-8."
        raise UnreadableFile(why, options)
    control = _CONTROL.search(raw)
    if control is not None:
        line = line_of(raw, control.start(), reading)
        why = f"It is not text: it is not UTF-8 and has the control byte 0x{control.group()[0]:02x} in line {line}."
        raise UnreadableFile(why)
    high = sum(1 for _ in _HIGH.finditer(raw))
    in_runs = sum(len(run.group()) for run in _HIGH_RUN.finditer(raw))
    reading.encoding = "windows-1252"
    undefined = _first_error(raw, reading)
    if in_runs * 3 > high or undefined is not None or _SYMBOL_IN_WORD.search(raw):
        place, word = _example(raw)
        why = (
            f"It is not UTF-8, and its bytes do not look like Windows-1252 either, for example {word!r} in line "
            f"{line_of(raw, place, reading)}. Convert it to UTF-8."
        )
        raise UnreadableFile(why, options if undefined is None else None)


def _example(raw: Bytes) -> tuple[int, str]:
    """A word that shows how the bytes look in Windows-1252, and its place: a suspicious one if there is one."""
    symbol = _SYMBOL_IN_WORD.search(raw)
    high = symbol or _HIGH.search(raw)
    place = 0 if high is None else high.start() + (symbol is not None)
    start = max(0, place - 20)
    for match in _WORD.finditer(raw, start):
        if match.end() > place:
            return place, match.group().decode(CODECS["windows-1252"], "replace").strip()
    return place, ""
