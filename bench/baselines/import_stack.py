"""Import what sluice_worker.stack imports, in a new Python process. Prints one line when it is done."""

import json
import os
import shutil
import time

# Use the font list of the snapshot, so that matplotlib does not scan all fonts. Not part of the measured time.
started = time.perf_counter()
shutil.copytree("/usr/share/sluice/matplotlib", os.environ["MPLCONFIGDIR"], dirs_exist_ok=True)
font_cache_ms = (time.perf_counter() - started) * 1000

import matplotlib  # noqa: E402

matplotlib.use("Agg")
import matplotlib.pyplot  # noqa: E402
import numpy  # noqa: E402
import pandas  # noqa: E402
import scipy.optimize  # noqa: E402
import scipy.signal  # noqa: E402
import scipy.stats  # noqa: E402
import statsmodels.api  # noqa: E402

try:
    import pyarrow
    import pyarrow.parquet  # noqa: F401
except ImportError:  # a snapshot built from Debian's packages has no pyarrow
    pass

print(json.dumps({"fontCacheMs": font_cache_ms}), flush=True)
