import { access, chmod, constants, mkdir, rename } from "node:fs/promises";
import path from "node:path";
import { downloadDebianPackages } from "./debian-packages.ts";
import { runStep, type OnProgress } from "./progress.ts";
import { requireSystemPackages } from "./require-system-packages.ts";
import { runProgram } from "./run-program.ts";
import { openWorkplace } from "./workplace.ts";

/** gVisor's runsc out of Debian's package into the cache's `tools/`, unless PATH or the cache has one. It is static, so that it runs on an older release too. */
export async function fetchRunsc({
  cacheDirectory,
  searchPath,
  onProgress,
  signal,
}: {
  cacheDirectory: string;
  searchPath: string;
  onProgress?: OnProgress;
  signal?: AbortSignal;
}): Promise<void> {
  const final = path.join(cacheDirectory, "tools", "runsc");
  const candidates = [
    final,
    ...searchPath
      .split(":")
      .filter(path.isAbsolute)
      .map((directory) => path.join(directory, "runsc")),
  ];
  if ((await Promise.all(candidates.map(isExecutable))).includes(true)) return;
  await requireSystemPackages(signal);
  await using workplace = await openWorkplace(cacheDirectory);
  const { directory } = workplace;
  await runStep("gVisor (runsc)", onProgress, async (say) => {
    const archives = await downloadDebianPackages({ names: ["runsc"], directory, onLine: say, signal });
    const archive = archives.find((file) => path.basename(file).startsWith("runsc_"));
    if (!archive) throw new Error("Debian has no runsc for this machine.");
    await runProgram({ program: "dpkg-deb", args: ["-x", archive, path.join(directory, "runsc")], signal });
    await mkdir(path.dirname(final), { recursive: true });
    const binary = path.join(directory, "runsc", "usr", "bin", "runsc");
    await chmod(binary, 0o755);
    await rename(binary, final);
    return { value: undefined, detail: path.basename(archive).split("_")[1] };
  });
}

function isExecutable(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}
