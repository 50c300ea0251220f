import { mkdirSync } from "node:fs";
import path from "node:path";
import { UsageError } from "../errors/sluice-error.ts";
import { sqlite } from "../history/sqlite.ts";

/** One server a data directory: a second would take the turns of the first for those of a dead one. The lock is the system's, so it ends with the process, however that ends. */
export function lockDirectory(directory: string): Disposable {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const file = path.join(directory, "server.lock");
  const database = new sqlite.DatabaseSync(file, { timeout: 0 });
  try {
    database.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;");
  } catch (error) {
    database.close();
    throw new UsageError({
      code: "DIRECTORY_IN_USE",
      message: `Another server keeps its data in ${directory}.`,
      hint: "Stop it, or give this one a directory of its own (SLUICE_DATA, or artifacts.directory of the configuration).",
      cause: error,
    });
  }
  return { [Symbol.dispose]: () => database.close() };
}
