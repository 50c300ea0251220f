import { parseArgs } from "node:util";
import { cacheDirectory } from "../../config/environment.ts";
import { buildSnapshot } from "../../sandbox/snapshot/build-snapshot.ts";
import { requireSnapshot, type SnapshotInfo } from "../../sandbox/snapshot/find-snapshot.ts";
import { verifySnapshot, type Verification } from "../../sandbox/snapshot/verify-snapshot.ts";
import { exitStatus } from "../exit-status.ts";
import { createProgressPrinter, formatBytes } from "../progress-printer.ts";
import { wrongUsage } from "../terminal.ts";

export const snapshotUsage = `Usage: sluice snapshot build [--fresh] [--json]
       sluice snapshot info [--json]
       sluice snapshot verify [--json]

The snapshot is the read-only file system that sandboxes start from: Debian, Python and its packages.

  build     build the snapshot for this version of Sluice, unless it exists
  info      show its id, packages, size and path
  verify    check that it is complete and contains nothing that it should not

  --fresh   download Debian and the Python packages again, to get newer security fixes
  --json    print one JSON document

Exit status: 0 success, 1 the snapshot is not valid, 2 wrong usage, 3 no snapshot.
`;

export async function snapshotCommand(args: string[], signal: AbortSignal): Promise<number> {
  const { action, json, fresh } = parse(args);
  const cache = cacheDirectory();
  if (action === "verify") {
    const verification = await verifySnapshot({ cacheDirectory: cache, signal });
    process.stdout.write(json ? `${JSON.stringify(verification)}\n` : describeVerification(verification));
    return verification.ok ? exitStatus.ok : exitStatus.failed;
  }
  const onProgress = createProgressPrinter(process.stderr);
  const snapshot =
    action === "build"
      ? await buildSnapshot({ cacheDirectory: cache, fresh, onProgress, signal })
      : await requireSnapshot({ cacheDirectory: cache });
  process.stdout.write(json ? `${JSON.stringify(snapshot)}\n` : describe(snapshot));
  return exitStatus.ok;
}

function parse(args: string[]) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { json: { type: "boolean", default: false }, fresh: { type: "boolean", default: false } },
  });
  const [action, ...more] = positionals;
  if ((action === "build" || action === "info" || action === "verify") && more.length === 0 && !(values.fresh && action !== "build"))
    return { action, ...values };
  throw wrongUsage("snapshot", `expected build, info or verify, not ${args.join(" ") || "nothing"}.`);
}

function describe({ id, rootfs, python, packages, source, bytes }: SnapshotInfo): string {
  const lines = [
    ["snapshot", id],
    ["python", python],
    ["packages", listMainPackages(packages)],
    [
      "source",
      source === "wheels"
        ? "wheels from the lock file"
        : "Debian's packages, because no package index could be reached; run `sluice snapshot build` to try again",
    ],
    ["size", formatBytes(bytes)],
    ["path", rootfs],
  ];
  return `${lines.map(([name = "", value = ""]) => `${name.padEnd(10)}${value}`).join("\n")}\n`;
}

/** The versions of the packages that users ask for: `pandas 2.3.3, numpy 2.3.4, …`. */
export function listMainPackages(packages: SnapshotInfo["packages"]): string {
  const names = ["pandas", "numpy", "scipy", "matplotlib", "statsmodels", "pyarrow", "openpyxl"];
  return names.map((name) => (packages[name] ? `${name} ${packages[name]}` : `no ${name}`)).join(", ");
}

function describeVerification({ snapshot, ok, checks }: Verification): string {
  const lines = checks.map((check) => `${check.ok ? "✓" : "✗"} ${check.name.padEnd(12)} ${check.detail}`);
  return [
    `snapshot ${snapshot.id} (${snapshot.source})`,
    ...lines,
    ok ? "The snapshot is valid." : "The snapshot is NOT valid. Run `sluice snapshot build` to build it again.",
    "",
  ].join("\n");
}
