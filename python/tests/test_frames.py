"""Frames arrive complete however they are split, and bytes read ahead belong to the next frame."""

from __future__ import annotations

import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_worker.frames import ChannelClosed, FrameReader, encode, write_all

bodies = st.lists(st.one_of(st.binary(max_size=200), st.integers(0, 200_000).map(bytes)), min_size=1, max_size=5)


@given(bodies=bodies, pieces=st.lists(st.integers(1, 100_000), max_size=20), copied=st.booleans())
def test_frames_arrive_as_sent_however_they_are_split(bodies: list[bytes], pieces: list[int], copied: bool) -> None:
    sent = b"".join(encode({"type": "one", "number": at}, len(body)) + body for at, body in enumerate(bodies))
    read_end, write_end = os.pipe()
    writer = threading.Thread(target=_write, args=(write_end, sent, pieces))
    writer.start()
    reader = FrameReader(read_end)
    try:
        for at, body in enumerate(bodies):
            header, size = reader.read_head()
            assert header == {"type": "one", "number": at}
            if copied:
                assert reader.read(size) == body
            else:
                place = bytearray(size)
                reader.read_into(memoryview(place))
                assert place == body
        with pytest.raises(ChannelClosed):
            reader.read_head()
    finally:
        os.close(read_end)
        writer.join()


def _write(fd: int, data: bytes, pieces: list[int]) -> None:
    for size in pieces:
        write_all(fd, data[:size])
        data = data[size:]
    write_all(fd, data)
    os.close(fd)
