import { UsageError } from "./errors/sluice-error.ts";

const needed = 24;

/** The first import of every entry for Node.js: an older one is told so, instead of failing at whatever it lacks. */
if (Number.parseInt(process.versions.node, 10) < needed)
  throw new UsageError({
    code: "NODE_TOO_OLD",
    message: `The library sluice needs Node.js ${needed} or newer; this is ${process.version}.`,
    hint: "Run the program with a newer Node.js. The command `sluice` works with this one too: it brings its own.",
  });
