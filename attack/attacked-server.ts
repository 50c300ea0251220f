import { createHash } from "node:crypto";
import path from "node:path";
import { openServerProcess, type ServerProcess } from "../bench/open-server-process.ts";
import { openModelThread, type ModelThread } from "./model-thread.ts";

const MB = 1024 * 1024;
const tenants = ["neighbour", "hostile", "operator"] as const;
type Tenant = (typeof tenants)[number];

export interface AttackedServer extends AsyncDisposable {
  readonly process: ServerProcess;
  readonly model: ModelThread;
  readonly tokens: Readonly<Record<Tenant, string>>;
  readonly limits: ReturnType<typeof toLimits>;
  /** Lines of its log at level `error` and above. */
  readonly errors: readonly string[];
}

/** Small enough to be reached in seconds. The time limit of a cell is the default one, so that a busy machine never reaches it. */
const toLimits = (isShort: boolean) =>
  ({
    sandbox: { memoryBytes: 768 * MB, scratchBytes: 64 * MB },
    uploadBytes: 16 * MB,
    conversationBytes: (isShort ? 40 : 128) * MB,
    maxTurnsPerClient: 4,
    maxQueuedPerClient: 8,
  }) as const;

/** Starts a real server with two tenants and an operator, for whom the metrics are. */
export async function openAttackedServer({
  driver,
  isShort,
}: {
  readonly driver: string;
  readonly isShort: boolean;
}): Promise<AttackedServer> {
  const cleanup = new AsyncDisposableStack();
  try {
    const model = cleanup.use(await openModelThread());
    const tokens = Object.fromEntries(tenants.map((tenant) => [tenant, `token-of-${tenant}-`.padEnd(43, "x")])) as Record<Tenant, string>;
    const errors: string[] = [];
    const limits = toLimits(isShort);
    const configuration = toConfiguration({ driver, modelUrl: model.url, tokens, limits });
    const onLog = (text: string): void => void errors.push(...text.split("\n").filter((line) => /"level":"(?:error|fatal)"/.test(line)));
    const server = cleanup.use(await openServerProcess({ configuration, onLog }));
    return { process: server, model, tokens, limits, errors, [Symbol.asyncDispose]: () => cleanup.disposeAsync() };
  } catch (error) {
    await cleanup.disposeAsync();
    throw error;
  }
}

interface ConfigurationOptions extends Pick<AttackedServer, "tokens" | "limits"> {
  readonly driver: string;
  readonly modelUrl: string;
}

function toConfiguration({ driver, modelUrl, tokens, limits: { sandbox, ...server } }: ConfigurationOptions): object {
  const backend = (file: string) => ({ command: process.execPath, args: [path.join(import.meta.dirname, file)], allow: ["*"] });
  return {
    mcpServers: { notes: backend("../test/fixtures/notes-server.ts"), hostile: backend("hostile-server.ts") },
    model: "openai-compatible:attack",
    models: { "openai-compatible": { baseUrl: modelUrl, apiKey: "none" } },
    sandbox: { driver, poolSize: 1, maxSandboxes: 4 },
    limits: { sandbox },
    auth: {
      tokens: tenants.map((tenant) => ({
        tenant,
        sha256: createHash("sha256").update(tokens[tenant]).digest("hex"),
        operator: tenant === "operator",
      })),
    },
    server: { ...server, allowTenantsToShareKernel: driver === "bubblewrap" },
  };
}
