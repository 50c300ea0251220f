import { openPython, type BarePython } from "./open-python.ts";

/** Returns the milliseconds from the start of a new Python process to its first line after importing pandas and the rest. The snapshot is in the page cache. */
export async function timeBareImport({ rootfs }: { rootfs: string }): Promise<number> {
  const started = performance.now();
  await using python = openPython({ rootfs, script: "import_stack.py" });
  const { fontCacheMs } = await python.next();
  return performance.now() - started - fontCacheMs!;
}

/** Returns the milliseconds of `json.load` in a new Python process that imported nothing else. */
export async function timeBareJsonLoad({ rootfs, file }: { rootfs: string; file: string }): Promise<number> {
  await using python = openPython({ rootfs, script: "load_json.py", args: ["/tmp/rows.json"], binds: { "/tmp/rows.json": file } });
  return (await python.next())["ms"]!;
}

/** Opens a Python process with matplotlib imported that has drawn once. Each `ask` draws once more and returns `ms`. */
export async function openBareChart({ rootfs }: { rootfs: string }): Promise<BarePython> {
  const python = openPython({ rootfs, script: "line_chart.py" });
  await python.next();
  return python;
}

/** Opens a Jupyter kernel that has run cells before. Each `ask` runs a trivial cell until the kernel reports idle, and returns `ms`. */
export async function openJupyterKernel({ rootfs, wheels }: { rootfs: string; wheels: string }): Promise<BarePython> {
  const python = openPython({ rootfs, script: "jupyter_cell.py", binds: { "/tmp/wheels": wheels }, pythonPath: "/tmp/wheels" });
  await python.next();
  return python;
}
