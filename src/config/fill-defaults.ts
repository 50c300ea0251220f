import path from "node:path";
import { defaultExecuteLimits } from "../execute/contract.ts";
import { defaultLimits } from "../sandbox/limits.ts";
import { defaultBudgets } from "../turn/budgets.ts";
import { defaultCallLimits } from "./default-call-limits.ts";
import type { ConfigurationFile } from "./configuration-schema.ts";
import type { BudgetsConfiguration, Configuration, ServeConfiguration, ServerConfiguration } from "./contract.ts";

const { steps, chartBoost, wallMs, previewBytes, stepBytes } = defaultBudgets;
const budgetsUnlessTold: BudgetsConfiguration = { steps, chartBoost, wallMs, previewBytes, stepBytes };

const serveUnlessTold: ServeConfiguration = {
  allowedHosts: [],
  maxTurns: 16,
  maxTurnsPerClient: 8,
  maxQueuedPerClient: 100,
  queueDeadlineMs: 60_000,
  drainMs: 10_000,
  uploadBytes: 256 * 1024 * 1024,
  retention: { days: 30, maxBytes: 10 * 1024 ** 3 },
};

export interface FillOptions {
  /** What relative paths are counted from: the file's directory. */
  readonly base: string;
  readonly dataDirectory: string;
}

export function fillDefaults(file: ConfigurationFile, { base, dataDirectory }: FillOptions): Configuration {
  const { sandbox, limits, execute, artifacts, budgets, tools, auth, server } = file;
  return {
    mcpServers: Object.fromEntries(Object.entries(file.mcpServers ?? {}).map(([name, server]) => [name, atBase(server, base)])),
    model: file.model === undefined ? null : withScriptAt(file.model, base),
    models: file.models ?? {},
    sandbox: { driver: "auto", poolSize: 1, queueDeadlineMs: 60_000, ...sandbox },
    limits: {
      sandbox: { ...defaultLimits, ...limits?.sandbox },
      execute: { ...defaultExecuteLimits, ...limits?.execute },
      mcp: { ...defaultCallLimits, ...limits?.mcp },
    },
    execute: { engine: "auto", isolation: "namespaces", ...execute },
    artifacts: { directory: path.resolve(base, artifacts?.directory ?? path.join(dataDirectory, "artifacts")) },
    session: file.session ?? null,
    budgets: { ...budgetsUnlessTold, ...budgets },
    tools: { allow: [], toolPolicy: "annotations", ...tools },
    auth: { tokens: [], ...auth },
    server: { ...serveUnlessTold, ...server, retention: { ...serveUnlessTold.retention, ...server?.retention } },
  };
}

/** A program is started where the file is, so that its arguments mean the same from wherever sluice is started. */
function atBase(server: ServerConfiguration, base: string): ServerConfiguration {
  return "command" in server ? { ...server, cwd: path.resolve(base, server.cwd ?? ".") } : server;
}

/** `script:FILE.json` with its path made absolute; other names as they are. */
export function withScriptAt(model: string, base: string): string {
  return model.startsWith("script:") ? `script:${path.resolve(base, model.slice("script:".length))}` : model;
}
