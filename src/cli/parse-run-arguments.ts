import { parseArgs } from "node:util";
import type { UsageError } from "../errors/sluice-error.ts";
import { helperNames, isPythonIdentifier, whyReserved } from "../protocol/python-names.ts";
import type { DriverName, SandboxLimits } from "../sandbox/contract.ts";
import { defaultLimits, maxTimeMs, withLimits } from "../sandbox/limits.ts";
import { wrongUsage } from "./wrong-usage.ts";

export interface RunArguments {
  readonly script: string;
  readonly inputs: readonly (readonly [alias: string, file: string])[];
  readonly expect?: readonly ("image" | "chart")[];
  readonly driver: DriverName | "auto";
  readonly limits: SandboxLimits;
  readonly out: string;
  readonly json: boolean;
  readonly quiet: boolean;
}

const driverNames = ["auto", "gvisor", "gvisor-rootless", "bubblewrap"];
/** With less, Python and its libraries do not even start. */
const minMemoryMb = 64;

/** What was typed after `sluice run`, or a UsageError that says what is wrong with it. */
export function parseRunArguments(args: string[]): RunArguments {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      input: { type: "string", multiple: true, default: [] },
      expect: { type: "string" },
      driver: { type: "string", default: "auto" },
      "timeout-s": { type: "string" },
      "memory-mb": { type: "string" },
      out: { type: "string", default: "sluice-out" },
      json: { type: "boolean", default: false },
      quiet: { type: "boolean", default: false },
    },
  });
  const [script] = positionals;
  if (script === undefined || positionals.length !== 1) throw wrong(`one script is needed, ${positionals.length} were given.`);
  if (!driverNames.includes(values.driver)) throw wrong(`--driver ${values.driver} is none of ${driverNames.join(", ")}.`);
  if (values.out === "") throw wrong("--out needs a directory.");
  return {
    script,
    inputs: toInputs(values.input),
    ...(values.expect === undefined ? {} : { expect: toKinds(values.expect) }),
    driver: values.driver as RunArguments["driver"],
    limits: toLimits(values["timeout-s"], values["memory-mb"]),
    out: values.out,
    json: values.json,
    quiet: values.quiet,
  };
}

function toInputs(texts: readonly string[]): (readonly [string, string])[] {
  const inputs = new Map<string, string>();
  for (const text of texts) {
    const at = text.indexOf("=");
    if (at <= 0 || at === text.length - 1) throw wrong(`--input ${text} is not ALIAS=FILE.`);
    const alias = text.slice(0, at);
    if (!isPythonIdentifier(alias)) throw wrong(`--input ${alias}: an alias is a Python name, like prices_1.`);
    const reserved = whyReserved(alias, [...helperNames]);
    if (reserved !== null) throw wrong(`--input ${alias}: this is ${reserved}; choose another alias, like ${alias}_1.`);
    if (inputs.has(alias)) throw wrong(`--input ${alias} was given twice.`);
    inputs.set(alias, text.slice(at + 1));
  }
  return [...inputs];
}

function toKinds(text: string): ("image" | "chart")[] {
  const kinds = text
    .split(",")
    .map((kind) => kind.trim())
    .filter((kind) => kind !== "");
  for (const kind of kinds) if (kind !== "image" && kind !== "chart") throw wrong(`--expect ${kind} is neither image nor chart.`);
  if (kinds.length === 0) throw wrong("--expect needs image, chart or both.");
  return [...new Set(kinds)] as ("image" | "chart")[];
}

/** A sandbox that lives for one cell lives as long as the cell may. */
function toLimits(timeoutS: string | undefined, memoryMb: string | undefined): SandboxLimits {
  const seconds = toNumber("--timeout-s", timeoutS);
  const megabytes = toNumber("--memory-mb", memoryMb);
  const maxSeconds = Math.floor(maxTimeMs / 1000);
  if (seconds !== undefined && seconds > maxSeconds) throw wrong(`--timeout-s ${timeoutS} is too long, at most ${maxSeconds}.`);
  if (megabytes !== undefined && megabytes < minMemoryMb) throw wrong(`--memory-mb ${memoryMb} is too little, at least ${minMemoryMb}.`);
  const cellTimeoutMs = seconds === undefined ? defaultLimits.cellTimeoutMs : Math.ceil(seconds * 1000);
  return withLimits({
    cellTimeoutMs,
    leaseTimeoutMs: Math.min(maxTimeMs, Math.max(defaultLimits.leaseTimeoutMs, cellTimeoutMs + 60_000)),
    ...(megabytes === undefined ? {} : { memoryBytes: Math.ceil(megabytes * 1024 * 1024) }),
  });
}

function toNumber(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isFinite(value) || value <= 0) throw wrong(`${flag} ${text} is not a positive number.`);
  return value;
}

export function wrong(message: string): UsageError {
  return wrongUsage("run", message);
}
