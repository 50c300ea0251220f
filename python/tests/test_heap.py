"""A heap that was given away and mapped back is the same heap, and its file is not written to."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

WORKER = """
import hashlib, json, os, sys
from sluice_worker import heap
from sluice_worker.frames import read_frame, write_frame

path, spoil = sys.argv[1], sys.argv[2] == "spoil"
open(path, "w").close()
to_worker, to_host = os.pipe(), os.pipe()
if os.fork() == 0:  # the host, which ends when the worker does
    os.close(to_host[1])
    with open(path, "wb") as file:
        while (frame := read_frame(to_host[0]))[0]["type"] == "heap":
            file.write(frame[1])
        if spoil:
            file.seek(5000)
            file.write(b"something else")
    write_frame(to_worker[1], {"type": "heap-written"})
    os._exit(0)

quiet = {number: str(number) * 600 for number in range(10_000)}
busy = [[number] for number in range(100_000)]

def rehearse():
    for one in busy:
        one.append(0)
    for one in busy:
        one.pop()

heap.share_heap(to_worker[0], to_host[1], rehearse, path)

def digest():
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()

before = digest()
with open("/proc/self/maps") as file:
    spans = [line.split() for line in file if path in line]
sizes = [int(end, 16) - int(start, 16) for start, _, end in (line[0].partition("-") for line in spans)]
same = all(text == str(number) * 600 for number, text in quiet.items())
for number in quiet:
    quiet[number] = quiet[number][1:] + "x"  # every object of it is counted up and down, and freed
rehearse()
print(json.dumps({
    "bytes": sum(sizes), "modes": sorted({line[1] for line in spans}), "file": os.path.getsize(path), "same": same,
    "unchanged": digest() == before, "after": all(text == (str(number) * 600)[1:] + "x" for number, text in quiet.items()),
    "busy": busy == [[number] for number in range(100_000)],
}))
"""


def run(path: Path, how: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WORKER, str(path), how], capture_output=True, text=True, timeout=120)


def test_what_a_rehearsal_leaves_alone_is_mapped_from_the_file_and_stays_what_it_was(tmp_path: Path) -> None:
    done = run(tmp_path / "heap", "as it is")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    size = found.pop("bytes")
    assert size > 10_000_000
    assert found == {
        "modes": ["rw-p"], "file": size, "same": True, "unchanged": True, "after": True, "busy": True,
    }  # fmt: skip


def test_a_process_whose_file_is_not_what_it_sent_ends(tmp_path: Path) -> None:
    assert run(tmp_path / "heap", "spoil").returncode == -9
