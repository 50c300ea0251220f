import { NoSandboxError } from "../../errors/sluice-error.ts";
import { recipe } from "./recipe.ts";
import { tryProgram } from "./run-program.ts";

/** By Debian's names: what is true in a shell when the package is there. scripts/setup.mjs has the same names, for a machine that has no Node.js 24 yet. */
export const systemPackages: Readonly<Record<string, string>> = {
  bubblewrap: "command -v bwrap",
  "ca-certificates": "test -e /etc/ssl/certs/ca-certificates.crt",
  "debian-archive-keyring": `ls /usr/share/keyrings/debian-archive-${recipe.suite}-stable.*`,
  mmdebstrap: "command -v mmdebstrap",
  "python3-pip": "python3 -c 'import pip' || /usr/bin/python3 -c 'import pip'",
};

/** Says everything that is missing at once, before anything is brought. */
export async function requireSystemPackages(signal?: AbortSignal): Promise<void> {
  const missing: string[] = [];
  for (const [name, isThere] of Object.entries(systemPackages)) {
    const { exitCode } = await tryProgram({ program: "sh", args: ["-c", isThere], signal });
    if (exitCode !== 0) missing.push(name);
  }
  if (missing.length === 0) return;
  throw new NoSandboxError({
    code: "SYSTEM_PACKAGES_MISSING",
    message: `What sandboxes are made with is not installed (Debian's names): ${missing.join(", ")}.`,
    hint: `Run once: sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends ${missing.join(" ")}'`,
    details: { missing },
  });
}
