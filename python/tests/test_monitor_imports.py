"""The monitor has to stay small: under gVisor it shares no memory with the process that imports the stack."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {"numpy", "pandas", "matplotlib", "scipy", "statsmodels", "pyarrow", "sluice", "asyncio"}


def test_the_monitor_imports_no_part_of_the_stack() -> None:
    code = "import sys, sluice_worker.monitor; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert HEAVY & {name.partition(".")[0] for name in loaded} == set()
