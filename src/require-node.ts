import { UsageError } from "./errors/sluice-error.ts";

const minimumVersion = 24;

/** The first import of every entry for Node.js. Throws a clear error on an old version, before it fails at a missing feature. */
if (Number.parseInt(process.versions.node, 10) < minimumVersion)
  throw new UsageError({
    code: "NODE_TOO_OLD",
    message: `The library sluice needs Node.js ${minimumVersion} or newer; this is ${process.version}.`,
    hint: "Run the program with a newer Node.js. The command `sluice` works with this version, because it includes its own Node.js.",
  });
