/** What the worker sees as its environment, on every driver. Frozen into zygotes and memory images; nothing of the host's own environment gets in. */
export const workerEnvironment: Readonly<Record<string, string>> = Object.freeze({
  PATH: "/usr/local/bin:/usr/bin:/bin",
  HOME: "/sandbox",
  LANG: "C.UTF-8",
  TZ: "UTC",
  PYTHONHASHSEED: "0",
  PYTHONDONTWRITEBYTECODE: "1",
  PYTHONUNBUFFERED: "1",
  OPENBLAS_NUM_THREADS: "1",
  OMP_NUM_THREADS: "1",
  JE_ARROW_MALLOC_CONF: "background_thread:false", // a thread of pyarrow's allocator would not survive a fork
  MPLBACKEND: "Agg",
  MPLCONFIGDIR: "/sandbox/.matplotlib",
});

export const workerUid = 1000;
export const scratchDirectory = "/sandbox";
