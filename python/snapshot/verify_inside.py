"""The checks of `sluice snapshot verify` that run inside the snapshot. Prints one JSON list of results."""

import importlib
import importlib.metadata
import importlib.util
import io
import json
import logging
import os
import pathlib
import re
import shutil
import sys
import warnings
import zoneinfo
from collections.abc import Callable

SAMPLES = {
    "Latin": "Größe, café, naïve, Łódź",
    "Greek and Cyrillic": "αβγ ΔΣΩ Привет",
    "Chinese": "中文图表 價格 销售额",
    "Japanese": "日本語の図表 カタカナ",
    "Korean": "한국어 그래프",
    "Arabic": "مرحبا بالعالم",
    "Devanagari": "हिन्दी में चित्र",
    "symbols": "€ £ ₹ ± × ÷ ≤ ≥ ≠ ∞ √ ∑ ∫ → ← ↑ ↓ ✓ ✗ ★ ● ■ ▲ ° µ ™ ‰",
    "emoji": "😀 📈 🚀 ✅ ⚠",
}


class CheckFailedError(Exception):
    """The snapshot does not pass a check."""


def forbidden(modules: list[str], programs: list[str]) -> str:
    """No module or program that fetches, installs or compiles exists in any directory."""
    found = [f"module {name}" for name in modules if _has_module(name)]
    distributions = {(d.metadata["Name"] or "").lower() for d in importlib.metadata.distributions()}
    found += [f"distribution {name}" for name in modules if name in distributions]
    # Also matches the names that Debian uses, like x86_64-linux-gnu-gcc-14 or pip3.13.
    alternatives = "|".join(re.escape(name) for name in programs)
    forbidden_name = re.compile(rf"(?:\w+-linux-gnu-)?(?:{alternatives})(?:-?\d[\d.]*)?")
    for directory, children, files in os.walk("/"):
        children.sort()
        if directory.startswith(("/proc", "/sys", "/dev", "/sandbox")):
            continue
        paths = [pathlib.Path(directory) / name for name in files if forbidden_name.fullmatch(name)]
        found += [str(path) for path in sorted(paths) if os.access(path, os.X_OK)]
    if found:
        raise CheckFailedError(f"found {', '.join(found)}")
    return f"none of {len(modules)} modules and {len(programs)} programs"


def _has_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def libraries(names: list[str]) -> str:
    """Each library can be imported and used."""
    for name in names:
        importlib.import_module(name)
    import numpy as np
    import pandas as pd
    import scipy.optimize
    import statsmodels.api as sm

    frame = pd.DataFrame({"x": np.arange(20.0), "y": np.arange(20.0) * 2 + 1})
    slope = sm.OLS(frame["y"], sm.add_constant(frame["x"])).fit().params["x"]
    root = scipy.optimize.brentq(lambda x: x * x - 2, 0, 2)
    if abs(slope - 2) > 1e-9 or abs(root * root - 2) > 1e-9:
        raise CheckFailedError(f"wrong numbers: slope {slope}, root {root}")
    sheet = io.BytesIO()
    frame.to_excel(sheet, index=False)
    if len(pd.read_excel(sheet)) != 20:
        raise CheckFailedError("a spreadsheet was not read back as written")
    if "pyarrow" in names:
        table = io.BytesIO()
        frame.to_parquet(table)
        if not pd.read_parquet(table).equals(frame):
            raise CheckFailedError("a Parquet file was not read back as written")
    return f"{len(names)} import and work"


def bytecode() -> str:
    """Every module has compiled code, because imports cannot write any to the read-only root."""
    missing = []
    for directory in (*sys.path, "/usr/lib/python3.13"):
        for file in pathlib.Path(directory).rglob("*.py") if directory else ():
            cached = pathlib.Path(importlib.util.cache_from_source(str(file)))
            if not cached.exists() and not file.is_symlink():
                missing.append(str(file))
    if missing:
        raise CheckFailedError(f"{len(missing)} modules are not compiled, for example {missing[0]}")
    return "every module is compiled"


def time_zones() -> str:
    """The standard library and pandas know the time zones."""
    import pandas as pd

    zones = zoneinfo.available_timezones()
    hour = pd.Timestamp("2024-07-01 12:00", tz="UTC").tz_convert("Asia/Kolkata").strftime("%H:%M")
    if len(zones) < 400 or hour != "17:30":
        raise CheckFailedError(f"{len(zones)} zones; noon UTC is {hour} in Kolkata")
    return f"{len(zones)} zones"


def fonts() -> str:
    """A figure with text in every script has no missing glyph with the default fonts."""
    import matplotlib.pyplot as plt

    logged = io.StringIO()
    logging.getLogger("matplotlib").addHandler(logging.StreamHandler(logged))
    figure = plt.figure()
    for index, text in enumerate(SAMPLES.values()):
        figure.text(0.1, 0.1 * index, text)
        figure.text(0.5, 0.1 * index, text, weight="bold")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(io.BytesIO(), format="png")
    missing = [*(str(warning.message) for warning in caught), *logged.getvalue().splitlines()]
    if missing:
        raise CheckFailedError(missing[0])
    return ", ".join(SAMPLES)


def font_cache(cache: str) -> str:
    """Matplotlib uses the font list of the snapshot instead of searching for fonts again."""
    import matplotlib as mpl
    from matplotlib import font_manager

    file = pathlib.Path(mpl.get_cachedir()) / f"fontlist-v{font_manager.FontManager.__version__}.json"
    if file.read_bytes() != (pathlib.Path(cache) / file.name).read_bytes():
        raise CheckFailedError(f"matplotlib wrote {file.name} again")
    return f"{len(font_manager.fontManager.ttflist)} faces"


def blas() -> str:
    """Numpy uses OpenBLAS."""
    import numpy as np

    np.linalg.eigvalsh(np.eye(3))
    loaded = {line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if "blas" in line}
    if not any("openblas" in name for name in loaded):
        raise CheckFailedError(f"OpenBLAS is not loaded; {sorted(loaded) or 'no BLAS library'} is")
    return "OpenBLAS"


def main() -> None:
    """Run every check, also after one failed."""
    options = json.loads(sys.argv[1])
    configuration = pathlib.Path(os.environ["MPLCONFIGDIR"])
    shutil.copytree(options["fontCache"], configuration, dirs_exist_ok=True)
    checks: dict[str, Callable[[], str]] = {
        "forbidden": lambda: forbidden(options["modules"], options["programs"]),
        "bytecode": bytecode,
        "libraries": lambda: libraries(options["libraries"]),
        "time zones": time_zones,
        "fonts": fonts,
        "font cache": lambda: font_cache(options["fontCache"]),
        "BLAS": blas,
    }
    results = []
    for name, check in checks.items():
        try:
            results.append({"name": name, "ok": True, "detail": check()})
        except Exception as error:
            results.append({"name": name, "ok": False, "detail": f"{type(error).__name__}: {error}"})
    print(json.dumps(results))


if __name__ == "__main__":
    main()
