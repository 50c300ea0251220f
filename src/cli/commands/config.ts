import { parseArgs } from "node:util";
import { hideSecrets } from "../../config/hide-secrets.ts";
import { loadConfiguration, type LoadedConfiguration } from "../../config/load-configuration.ts";
import { processEnvironment } from "../../config/environment.ts";
import { listLeaves, type Origin } from "../../config/trace-origins.ts";
import { toPathText } from "../../errors/argument-path.ts";
import { escapeControls } from "../../text/json.ts";
import { wrongUsage } from "../terminal.ts";

export const configUsage = `Usage: sluice config [--config FILE] [--json]

Prints the configuration as it takes effect, with secrets hidden, and where each value came from: the defaults, the file, or the environment.
Without --config, sluice.config.json is looked for in the working directory and upward.
`;

export async function configCommand(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { config: { type: "string" }, json: { type: "boolean", default: false } },
  });
  if (positionals.length > 0) throw wrongUsage("config", `sluice config does not understand: ${positionals.join(" ")}`);
  const environment = processEnvironment();
  const loaded = await loadConfiguration({ file: values.config, workingDirectory: process.cwd(), environment });
  process.stdout.write(values.json ? `${JSON.stringify(toJson(loaded), null, 2)}\n` : describe(loaded));
  return 0;
}

function toJson(loaded: LoadedConfiguration): unknown {
  // Without the text as written: beside a reference there may be a secret in it.
  const origins = Object.entries(loaded.origins).map(([at, origin]) => [
    at,
    "written" in origin ? { ...origin, written: undefined } : origin,
  ]);
  return { schemaVersion: 1, path: loaded.path, configuration: hideSecrets(loaded), origins: Object.fromEntries(origins) };
}

/** One line a value, as `path  value  origin`. */
function describe(loaded: LoadedConfiguration): string {
  const rows = listLeaves(hideSecrets(loaded)).map(({ path, value }) => {
    const name = toPathText(path);
    return [name, JSON.stringify(value), toWords(loaded.origins[name])] as const;
  });
  const [first, second] = [0, 1].map((column) => Math.min(60, Math.max(...rows.map((row) => row[column]!.length)))) as [number, number];
  const lines = rows.map(([name, value, origin]) => `${name.padEnd(first)}  ${value.padEnd(second)}  ${origin}`);
  const from = loaded.path?.replaceAll("\n", "\\n") ?? "no sluice.config.json was found; these are the defaults";
  return `${escapeControls([`# ${from}`, ...lines].join("\n"))}\n`;
}

function toWords(origin: Origin | undefined): string {
  return origin?.from === "environment" ? `environment: ${origin.variables.join(", ")}` : (origin?.from ?? "default");
}
