import { randomBytes } from "node:crypto";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { SluiceError } from "../../errors/sluice-error.ts";

/**
 * The token of a server whose configuration names none. It is made once and kept where only its owner can read it, so that what was pasted into a client's
 * configuration still works after a restart.
 */
export async function loadServerToken({ directory }: { directory: string }): Promise<string> {
  const file = path.join(directory, "server-token");
  try {
    const kept = (await readFile(file, "utf8").catch(() => "")).trim();
    if (/^[\w-]{32,}$/.test(kept)) {
      await chmod(file, 0o600);
      return kept;
    }
    const token = randomBytes(32).toString("base64url");
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await writeFile(file, `${token}\n`, { mode: 0o600 });
    await chmod(file, 0o600);
    return token;
  } catch (error) {
    throw new SluiceError({
      code: "STORAGE_UNAVAILABLE",
      message: `The server's token cannot be kept in ${file}: ${(error as Error).message}.`,
      hint: "Free space, or choose another directory (artifacts.directory).",
      cause: error,
    });
  }
}
