"""The part of the heap that cells hardly ever write to, as a file that all sandboxes share.

A process that has imported the stack holds some 150 MB of it on its heap, and from a memory image every sandbox would get a copy of its
own. So before the image is taken, what a rehearsal of cells left alone is written to a file of the host, and that file is mapped over it,
privately: what is only read is there once for all sandboxes, and a page that is written to becomes the sandbox's own.

Between writing and mapping nothing may change there, and Python cannot do one thing after the other without changing its heap. The calls
are therefore laid out beforehand, as a chain of contexts (makecontext(3)): each calls one function of the C library and goes on to the next.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import re
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import NoReturn

from .frames import read_frame, write_frame

HEAP_FILE = "/run/heap"
BLOCK = 32 << 10
SMALLEST = 128 << 10  # of a span in the file: each of them costs every sandbox a fault or two
RESERVE = 64 << 20  # a region of this size is what an allocator has reserved, and hardly any of it was written
PART = 1 << 20
LOOK_EVERY = 50_000  # calls and returns of the rehearsal
MAP_FIXED, MAP_STACK = 0x10, 0x20000
CONTEXT, STACK = 5 << 10, 3 << 10  # bytes for one call; ucontext_t has 968 on x86-64 and 4,560 on ARM64
LINK, STACK_START, STACK_SIZE = 1, 2, 4  # of ucontext_t, in words


@dataclass(frozen=True)
class Span:
    """A piece of memory."""

    start: int
    size: int

    @property
    def end(self) -> int:
        return self.start + self.size


@dataclass(frozen=True)
class Call:
    function: str
    arguments: tuple[int, ...]


def share_heap(channel_in: int, channel_out: int, rehearse: Callable[[], None], path: str = HEAP_FILE) -> None:
    """Have the host write what `rehearse` leaves alone to the file, and go on with the file in its place."""
    _fill_holes()
    blocks = list(_blocks())  # kept to the end: with them an arena could be given back that is still to be mapped
    quiet = [span for span in _join(_find_quiet(blocks, rehearse)) if span.size >= SMALLEST]
    store = os.memfd_create("heap")
    file = os.open(path, os.O_RDONLY)
    ours, theirs = socket.socketpair()
    helper = os.fork()
    if helper == 0:
        _hand_over(store, file, ours.fileno(), channel_in, channel_out)
    byte = ctypes.create_string_buffer(1)
    writes: list[Call] = []
    maps: list[Call] = []
    at = 0
    for span in quiet:
        writes.append(Call("pwrite", (store, span.start, span.size, at)))
        # To gVisor a mapping that is a stack is one of which single pages are written: it copies three of them, and not all within 2 MB.
        flags = mmap.MAP_PRIVATE | MAP_FIXED | MAP_STACK
        maps.append(Call("mmap", (span.start, span.size, mmap.PROT_READ | mmap.PROT_WRITE, flags, file, at)))
        at += span.size
    wait = [Call(name, (theirs.fileno(), ctypes.addressof(byte), 1)) for name in ("write", "read")]
    _call_all([*writes, *wait, *maps])
    os.waitpid(helper, 0)
    for fd in (store, file):
        os.close(fd)
    ours.close()
    theirs.close()


class MallocInfo(ctypes.Structure):
    """What mallinfo2(3) gives; the last number is what is free at the top of the heap."""

    _fields_ = [("numbers", ctypes.c_size_t * 10)]


def _fill_holes() -> None:
    """What is free between what is in use would be given out piece by piece, and make page after page the sandbox's own. It is taken for good."""
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = MallocInfo
    libc.malloc.restype = libc.sbrk.restype = ctypes.c_size_t
    libc.malloc_trim(0)
    size = 1 << 20
    while size >= 24:
        top = libc.sbrk(0) - libc.mallinfo2().numbers[-1]
        while (place := libc.malloc(ctypes.c_size_t(size))) < top:
            pass
        libc.free(ctypes.c_void_p(place))  # there is no other hole of this size
        size = size * 3 // 4


def _hand_over(store: int, file: int, signals: int, channel_in: int, channel_out: int) -> NoReturn:
    """In a process of its own: give the host what was stored, and let the chain go on when all of it is in the file."""
    try:
        os.read(signals, 1)
        parts = range(0, os.fstat(store).st_size, PART)
        for at in parts:
            write_frame(channel_out, {"type": "heap"}, os.pread(store, PART, at))
        write_frame(channel_out, {"type": "heap-end"})
        read_frame(channel_in)
        if any(os.pread(file, PART, at) != os.pread(store, PART, at) for at in parts):
            raise ValueError("the file is not what was sent")
        os.write(signals, b"1")
    except BaseException:
        os.kill(os.getppid(), signal.SIGKILL)  # it must not go on with anything else in the place of its heap
    finally:
        os._exit(0)


def _find_quiet(blocks: list[Span], rehearse: Callable[[], None]) -> list[Span]:
    """The blocks that the rehearsal does not change. A process of its own rehearses: to be watched changes every function that is called."""
    result, answer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with open(answer, "w") as file:
                json.dump([block.start for block in _watch(blocks, rehearse)], file)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(answer)
    with open(result) as file:
        told = file.read()
    if status := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise RuntimeError(f"The process that rehearsed cells ended with {status}.")
    quiet = set(json.loads(told))
    return [block for block in blocks if block.start in quiet]


def _watch(blocks: list[Span], rehearse: Callable[[], None]) -> Iterable[Span]:
    """Looks at the end and now and then on the way: many a count goes up for the time of a call only."""
    seen = os.memfd_create("seen")
    os.ftruncate(seen, BLOCK)
    copy, now = mmap.mmap(-1, sum(block.size for block in blocks)), mmap.mmap(seen, BLOCK)
    at, now_at = (ctypes.addressof(ctypes.c_char.from_buffer(one)) for one in (copy, now))
    copies: dict[Span, int] = {}
    for block in blocks:
        copies[block] = at
        at += block.size
    for block, where in copies.items():
        ctypes.memmove(where, block.start, block.size)
    compare = ctypes.CDLL(None).memcmp
    compare.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    calls = count(1)

    def changed(block: Span, where: int) -> bool:
        try:  # read by the kernel: what was given back to it meanwhile is an error, and not the end of this process
            read = os.pwrite(seen, (ctypes.c_char * block.size).from_address(block.start), 0)
        except OSError:
            return True
        return read < block.size or compare(now_at, where, block.size) != 0

    def look() -> None:
        for block in [block for block, where in copies.items() if changed(block, where)]:
            del copies[block]

    def on_call(*_: object) -> None:
        if next(calls) % LOOK_EVERY == 0:
            look()

    sys.setprofile(on_call)
    rehearse()
    sys.setprofile(None)
    look()
    for number in range(3000):  # each is written to a place of its own in the table of all names
        sys.intern(f"a name that comes and goes {number}")
    look()
    return copies


def _blocks() -> Iterator[Span]:
    """The heap in blocks, without those in which there is nothing."""
    nothing = bytes(BLOCK)
    for region in _regions():
        for start in range(region.start, region.end, BLOCK):
            size = min(BLOCK, region.end - start)
            if ctypes.string_at(start, size) != nothing[:size]:
                yield Span(start, size)


def _regions() -> list[Span]:
    """What the allocators took from the kernel."""
    with open("/proc/self/maps") as file:
        found = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) rw-p \S+ \S+ 0 *(|\[heap\])$", file.read(), re.MULTILINE)
    regions = [(Span(int(start, 16), int(end, 16) - int(start, 16)), name) for start, end, name in found]
    return [region for region, name in regions if name or region.size < RESERVE]


def _join(blocks: Iterable[Span]) -> list[Span]:
    spans: list[Span] = []
    for block in blocks:
        if spans and spans[-1].end == block.start:
            spans[-1] = Span(spans[-1].start, spans[-1].size + block.size)
        else:
            spans.append(block)
    return spans


def _call_all(calls: list[Call]) -> None:
    """One after the other, with nothing in between."""
    libc, step = ctypes.PyDLL(None), CONTEXT + STACK
    room = mmap.mmap(-1, (len(calls) + 1) * step)
    back = ctypes.addressof(ctypes.c_char.from_buffer(room))
    for number, call in enumerate(calls, 1):
        context = back + number * step
        libc.getcontext(ctypes.c_void_p(context))
        words = (ctypes.c_uint64 * 5).from_address(context)
        words[LINK] = context + step if number < len(calls) else back
        words[STACK_START], words[STACK_SIZE] = context + CONTEXT, STACK
        arguments = [ctypes.c_uint64(value) for value in call.arguments]
        libc.makecontext(ctypes.c_void_p(context), getattr(libc, call.function), len(arguments), *arguments)
    libc.swapcontext(ctypes.c_void_p(back), ctypes.c_void_p(back + step))
