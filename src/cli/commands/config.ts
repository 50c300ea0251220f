import { parseArgs } from "node:util";
import { hideSecrets } from "../../config/hide-secrets.ts";
import { loadConfiguration, type LoadedConfiguration } from "../../config/load-configuration.ts";
import { processEnvironment } from "../../config/environment.ts";
import { listLeaves, type Origin } from "../../config/trace-origins.ts";
import { toPathText } from "../../errors/argument-path.ts";
import { escapeControls } from "../../text/json.ts";
import { wrongUsage } from "../terminal.ts";

export const configUsage = `Usage: sluice config [--config FILE] [--json]

Prints the effective configuration, one value per line, and where each value comes from: default,
file or environment. Secrets are hidden. Without --config, sluice.config.json is searched from the
working directory upward.

  --config FILE   use this configuration
  --json          print one JSON document
`;

export async function configCommand(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { config: { type: "string" }, json: { type: "boolean", default: false } },
  });
  if (positionals.length > 0) throw wrongUsage("config", `unexpected argument: ${positionals.join(" ")}`);
  const environment = processEnvironment();
  const loaded = await loadConfiguration({ file: values.config, workingDirectory: process.cwd(), environment });
  process.stdout.write(values.json ? `${JSON.stringify(toJson(loaded), null, 2)}\n` : describe(loaded));
  return 0;
}

function toJson(loaded: LoadedConfiguration): unknown {
  // Omit the text from the file: it may contain a secret next to a reference.
  const origins = Object.entries(loaded.origins).map(([at, origin]) => [
    at,
    "written" in origin ? { ...origin, written: undefined } : origin,
  ]);
  return { schemaVersion: 1, path: loaded.path, configuration: hideSecrets(loaded), origins: Object.fromEntries(origins) };
}

/** Writes one line per value: `path  value  origin`. */
function describe(loaded: LoadedConfiguration): string {
  const rows = listLeaves(hideSecrets(loaded)).map(({ path, value }) => {
    const name = toPathText(path);
    return [name, JSON.stringify(value), describeOrigin(loaded.origins[name])] as const;
  });
  const widthOf = (column: 0 | 1): number => Math.min(60, Math.max(...rows.map((row) => row[column].length)));
  const [nameWidth, valueWidth] = [widthOf(0), widthOf(1)];
  const lines = rows.map(([name, value, origin]) => `${name.padEnd(nameWidth)}  ${value.padEnd(valueWidth)}  ${origin}`);
  const source = loaded.path?.replaceAll("\n", "\\n") ?? "no sluice.config.json found; these are the defaults";
  return `${escapeControls([`# ${source}`, ...lines].join("\n"))}\n`;
}

function describeOrigin(origin: Origin | undefined): string {
  return origin?.from === "environment" ? `environment: ${origin.variables.join(", ")}` : (origin?.from ?? "default");
}
