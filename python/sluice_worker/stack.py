"""The science stack, imported once and touched warm, before any sandbox exists."""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import random
import shutil

FONT_CACHE = "/usr/share/sluice/matplotlib"
SEED = 0
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # of <malloc.h>
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
    """Import what cells use, and use it once, so that a fork or a restored memory image has it ready."""
    _offer_font_cache()
    import matplotlib

    matplotlib.use("Agg")
    for name in STACK:
        importlib.import_module(name)
    try:
        import pyarrow
        import pyarrow.parquet

        pyarrow.set_cpu_count(1)
        pyarrow.set_io_thread_count(1)
    except ImportError:  # the snapshot made of Debian's own packages has no pyarrow
        pass

    import sluice
    import sluice._cell

    sluice._cell.install()
    keep_freed_memory()
    warm()

    # Cells see nothing of that use, and the collector, which would write to pages that forks share, does not look at it.
    import numpy

    random.seed(SEED)
    numpy.random.seed(SEED)
    gc.collect()
    gc.freeze()


def keep_freed_memory() -> None:
    """Freed memory is taken again instead of given back to the kernel and faulted in anew. Under gVisor arrays of a megabyte are five times as fast for it,
    and a monitor that gives back its buffer after every frame takes twice as long over a small cell."""
    libc = ctypes.CDLL(None)
    for option, size in ((M_MMAP_THRESHOLD, 32 << 20), (M_TRIM_THRESHOLD, 64 << 20), (M_TOP_PAD, 4 << 20)):
        libc.mallopt(option, size)


def warm() -> None:
    """Do once what a first cell would do, so that lazy imports, caches and (after a restore) memory pages are there."""
    import matplotlib.pyplot as plt
    import pandas as pd

    import sluice
    import sluice._cell

    frame = pd.DataFrame(
        {"t": pd.date_range("2024-01-01", periods=8), "k": list("abababab"), "v": [1.0, 2, 3, 4, 5, 6, 7, 8]}
    )
    frame.groupby("k")["v"].sum().to_json()
    frame.set_index("t")["v"].rolling(2).mean()
    for _ in range(2):  # the second one takes the memory that the first one gave back, as every later picture does
        figure, axes = plt.subplots()
        axes.plot(frame["t"], frame["v"], label="warm")
        axes.set_title("warm")
        axes.legend()
        sluice._cell.begin(lambda *_: None)
        sluice.save_figure("A line that rises, drawn to be warm", fig=figure)
    forget_fonts()


def forget_fonts() -> None:
    """matplotlib keeps font files open; no descriptor but the channel may be open when user code starts."""
    from matplotlib import font_manager

    getattr(font_manager, "_get_font").cache_clear()  # noqa: B009


def _offer_font_cache() -> None:
    """matplotlib wants a writable directory for its cache; give it a copy of the one built into the snapshot."""
    target = os.environ.get("MPLCONFIGDIR", "")
    if target and os.path.isdir(FONT_CACHE) and not os.path.isdir(target):
        shutil.copytree(FONT_CACHE, target)
