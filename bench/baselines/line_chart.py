"""Draw a simple line chart as PNG like save_figure (150 dpi, tight bounding box). Prints a line when warm; draws once per input line."""

import io
import json
import os
import shutil
import sys
import time

shutil.copytree("/usr/share/sluice/matplotlib", os.environ["MPLCONFIGDIR"], dirs_exist_ok=True)

import matplotlib  # noqa: E402

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


def draw() -> float:
    started = time.perf_counter()
    figure, axes = plt.subplots()
    axes.plot([1, 2, 3, 4, 5, 6], [3, 1, 4, 1, 5, 9])
    axes.set_title("Six points")
    axes.set_xlabel("step")
    axes.set_ylabel("value")
    figure.savefig(io.BytesIO(), format="png", dpi=150, bbox_inches="tight")
    plt.close(figure)
    return (time.perf_counter() - started) * 1000


for _ in range(5):
    draw()
print(json.dumps({"ready": 1}), flush=True)
for _ in sys.stdin:
    print(json.dumps({"ms": draw()}), flush=True)
