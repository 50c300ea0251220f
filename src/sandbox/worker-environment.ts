/** The worker's whole environment, on every driver. It is part of zygotes and memory images. The host's environment is not passed on. */
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
  JE_ARROW_MALLOC_CONF: "background_thread:false", // a background thread of pyarrow's allocator would not survive a fork
  MPLBACKEND: "Agg",
  MPLCONFIGDIR: "/sandbox/.matplotlib",
});

export const workerUid = 1000;
export const scratchDirectory = "/sandbox";
