"""What passes between the monitor and a cell process."""

from __future__ import annotations

import array
import os
import socket
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice_worker.connection import Connection, NotAFrame, socketpair
from sluice_worker.frames import MAGIC, MAX_BODY_BYTES, MAX_FRAME_BYTES, PREFIX, encode


def test_everything_that_arrived_is_drained_although_a_read_ends_at_every_message_with_descriptors() -> None:
    ours, theirs = map(Connection, socketpair())
    null = os.open(os.devnull, os.O_RDONLY)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null]))]
    frame = encode({"type": "artifact"}, 3) + b"abc"
    for position in range(len(frame)):
        theirs.sock.sendmsg([frame[position : position + 1]], rights)
    theirs.send({"type": "done"})
    theirs.close()
    os.close(null)
    ours.drain()
    assert ours.next_frame() == ({"type": "artifact"}, b"abc")
    assert ours.next_frame() == ({"type": "done"}, b"")
    assert ours.next_frame() is None
    ours.close()


def test_draining_does_not_wait_for_more() -> None:
    ours, theirs = map(Connection, socketpair())
    ours.drain()
    assert ours.next_frame() is None
    theirs.send({"type": "done"})
    ours.drain()
    assert ours.next_frame() == ({"type": "done"}, b"")
    ours.close()
    theirs.close()


@given(
    image=st.integers(0, 2_000_000),
    body=st.one_of(
        st.integers(0, 2_000_000), st.sampled_from([MAX_BODY_BYTES, MAX_BODY_BYTES + 1, 2 * MAX_BODY_BYTES])
    ),
)
@settings(max_examples=20)
def test_contents_of_any_size_travel_in_frames_that_the_host_accepts(image: int, body: int) -> None:
    ours, theirs = map(Connection, socketpair())
    contents = {"image": bytes(image), "data": b"x" * body}
    sending = threading.Thread(
        target=theirs.send_content,
        args=({"type": "artifact"}, contents["data"], "data", {"image": contents["image"]}),
    )
    sending.start()
    arrived = {"image": b"", "data": b""}
    kind = ""
    while kind != "artifact":
        header, part = ours.receive()
        kind = header["type"]
        assert len(encode(header, len(part))) + len(part) <= MAX_FRAME_BYTES
        arrived[header.get("of", "data")] += part
    assert arrived == contents
    sending.join()
    ours.close()
    theirs.close()


def test_a_cell_process_cannot_send_a_larger_frame() -> None:
    ours, theirs = map(Connection, socketpair())
    theirs.sock.send(PREFIX.pack(MAGIC, 2, MAX_FRAME_BYTES))
    with pytest.raises(NotAFrame, match="a frame of 1,048,590 bytes, at most 1,048,576 are allowed"):
        ours.receive()
    ours.close()
    theirs.close()
