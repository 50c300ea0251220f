"""The scientific Python stack: imported and used once before any sandbox runs, so that cells start warm."""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import random
import selectors
import shutil

FONT_CACHE = "/usr/share/sluice/matplotlib"
SEED = 0
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # from <malloc.h>
STACK = (
    "matplotlib.pyplot",
    "numpy",
    "pandas",
    "scipy.optimize",
    "scipy.signal",
    "scipy.stats",
    "statsmodels.api",
    "sluice_worker.script",
)


def import_stack() -> None:
    """Import what cells use and run it once, so that a fork or a restored memory image has it ready."""
    _copy_font_cache()
    import matplotlib

    matplotlib.use("Agg")
    for name in STACK:
        importlib.import_module(name)
    try:
        import pyarrow
        import pyarrow.parquet

        pyarrow.set_cpu_count(1)
        pyarrow.set_io_thread_count(1)
    except ImportError:  # a snapshot of Debian packages only has no pyarrow
        pass

    # asyncio uses epoll by default, which sandboxes on the kernel of the host do not have.
    setattr(selectors, "DefaultSelector", selectors.PollSelector)  # noqa: B010

    import sluice
    import sluice._cell

    sluice._cell.install_hooks()
    keep_freed_memory()
    warm()

    # Leave no trace for cells, and freeze the heap: the garbage collector would write to pages that forks share.
    import numpy

    random.seed(SEED)
    numpy.random.seed(SEED)
    gc.collect()
    gc.freeze()


def keep_freed_memory() -> None:
    """Make malloc keep freed memory instead of returning it to the kernel, where each reuse would fault the pages in again.

    Under gVisor this makes arrays of a megabyte five times as fast and halves the monitor's time for a small cell.
    """
    libc = ctypes.CDLL(None)
    for option, size in ((M_MMAP_THRESHOLD, 32 << 20), (M_TRIM_THRESHOLD, 64 << 20), (M_TOP_PAD, 4 << 20)):
        libc.mallopt(option, size)


def warm() -> None:
    """Do what a first cell would do, so that lazy imports, caches and (after a restore) memory pages are loaded."""
    import matplotlib.pyplot as plt
    import pandas as pd

    import sluice
    import sluice._cell

    frame = pd.DataFrame(
        {"t": pd.date_range("2024-01-01", periods=8), "k": list("abababab"), "v": [1.0, 2, 3, 4, 5, 6, 7, 8]}
    )
    frame.groupby("k")["v"].sum().to_json()
    frame.set_index("t")["v"].rolling(2).mean()
    for _ in range(2):  # the second one reuses the memory of the first, as every later picture does
        figure, axes = plt.subplots()
        axes.plot(frame["t"], frame["v"], label="warm")
        axes.set_title("warm")
        axes.legend()
        sluice._cell.begin(lambda *_: None)
        sluice.save_figure("A line that rises, drawn to be warm", fig=figure)
    forget_fonts()


def forget_fonts() -> None:
    """Close the font files that matplotlib keeps open: user code must start with no descriptor but the channel.

    Matplotlib would otherwise do it in every fork, which writes to half a megabyte of shared pages.
    """
    from matplotlib import font_manager

    getattr(font_manager, "_get_font").cache_clear()  # noqa: B009


def _copy_font_cache() -> None:
    """Copy the font cache of the snapshot to where matplotlib expects a writable cache."""
    target = os.environ.get("MPLCONFIGDIR", "")
    if target and os.path.isdir(FONT_CACHE) and not os.path.isdir(target):
        shutil.copytree(FONT_CACHE, target)
