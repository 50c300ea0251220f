"""Resource limits that a cell process sets for itself."""

from __future__ import annotations

import resource

RESERVED_DESCRIPTORS = 16


def set_rlimits(rlimits: dict[str, int]) -> None:
    """Set limits that a memory image cannot carry.

    `memory` limits the address space beyond what the stack has mapped, so that one giant allocation raises a MemoryError
    with a line number instead of ending the sandbox.
    """
    for name, value in rlimits.items():
        if name == "memory":
            with open("/proc/self/statm") as file:
                mapped = int(file.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (mapped + value, mapped + value))
        else:
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))


def prefer_for_oom_kill() -> None:
    """When memory runs out, the kernel should kill a cell process, not the monitor."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass


class DescriptorLimit:
    """The limit of open descriptors. While user code runs, a few are held back for the worker."""

    def __init__(self) -> None:
        self.release()

    def release(self) -> None:
        """Allow all descriptors up to the hard limit, which user code may have lowered."""
        _, self.hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (self.hard, self.hard))

    def hold_back(self) -> None:
        """Keep some descriptors for the worker, so that it still works after a cell that opens all it may."""
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(self.hard - RESERVED_DESCRIPTORS, self.hard // 2), self.hard))
