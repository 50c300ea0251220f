import { randomUUID } from "node:crypto";
import path from "node:path";
import type { LanguageModel } from "ai";
import { createFileStore, type ArtifactStore } from "../artifacts/artifact-store.ts";
import type { Configuration, ServerConfiguration } from "./configuration-schema.ts";
import { cacheDirectory, searchPath, type Environment } from "./environment.ts";
import type { LoadedConfiguration } from "./load-configuration.ts";
import { createRuntime, type Runtime } from "../create-runtime.ts";
import { createEvidenceStore } from "../evidence/create-evidence-store.ts";
import type { DatasetStore } from "../evidence/dataset/dataset.ts";
import { createDatasetFileStore } from "../evidence/dataset/create-dataset-store.ts";
import { createIdentityStore, type IdentityStore } from "../execute/identity/create-identity-store.ts";
import { createMcpSource } from "../tools/mcp/create-mcp-source.ts";
import { openModel } from "../models/open-model.ts";
import type { ProbeSink } from "../protocol/probe.ts";
import type { ToolSource } from "../tools/backend-tool.ts";
import { createToolCatalog, type ToolCatalog } from "../tools/create-tool-catalog.ts";
import { createToolPolicy, type ToolPolicy } from "../tools/tool-policy.ts";
import type { TurnRequest } from "../turn/turn-request.ts";
import { createConversation, type Conversation } from "../turn/create-conversation.ts";

/** The parts that the command, the MCP server and the HTTP server share. Each part starts on first use; disposing closes what was started. */
export interface Configured extends AsyncDisposable {
  readonly configuration: Configuration;
  readonly runtime: Runtime;
  /** By server name. */
  readonly sources: ReadonlyMap<string, ToolSource>;
  readonly catalog: ToolCatalog;
  readonly policy: ToolPolicy;
  /** Null if the configuration defines no identities, regions or profiles. */
  readonly identities: IdentityStore | null;
  readonly artifacts: ArtifactStore;
  readonly datasets: DatasetStore;
  /** The configured model; without one, the demo over the bundled sample, and null over other servers. */
  readonly modelName: string | null;
  /** Default: `modelName`. Rejects with MODEL_MISSING if that is null. */
  openModel(name?: string | null, signal?: AbortSignal): Promise<Exclude<LanguageModel, string>>;
  /** Everything that a turn needs except its question and its model. */
  openConversation(options?: ConversationPlace): Omit<TurnRequest, "question" | "model"> & { readonly conversation: Conversation };
}

/** The owner of a conversation, and the stores for what it produces. */
interface ConversationPlace {
  /** Default: a new conversation. */
  readonly conversation?: Conversation | undefined;
  readonly tenant?: string | undefined;
  /** Whom the bearer token of the request stands for. */
  readonly subject?: string | null | undefined;
  readonly artifacts?: ArtifactStore | undefined;
  readonly datasets?: DatasetStore | undefined;
}

export interface ConfiguredOptions {
  readonly loaded: LoadedConfiguration;
  readonly environment: Environment;
  /** The bundled sample, in place of the configured MCP servers. */
  readonly servers?: Readonly<Record<string, ServerConfiguration>> | undefined;
  /** Base directory for the file in `script:FILE.json`. */
  readonly workingDirectory?: string | undefined;
  readonly onProbe?: ProbeSink | undefined;
}

export function openConfigured({ loaded, environment, servers, workingDirectory, onProbe }: ConfiguredOptions): Configured {
  const { configuration } = loaded;
  const { sandbox, limits, execute, budgets, session } = configuration;
  const runtime = createRuntime({
    cacheDirectory: cacheDirectory(environment),
    searchPath: searchPath(environment),
    ...sandbox,
    limits: limits.sandbox,
    monty: { isolation: execute.isolation },
  });
  const entries = Object.entries(servers ?? configuration.mcpServers);
  const { maxConcurrentCalls, ...mcpLimits } = limits.mcp;
  const toSource = (name: string, { expose: _expose, allow: _allow, ...server }: ServerConfiguration): ToolSource =>
    createMcpSource({ name, server, environment, onProbe, ...mcpLimits });
  const sources = new Map(entries.map(([name, server]) => [name, toSource(name, server)]));
  const catalog = createToolCatalog({ sources: [...sources.values()], maxConcurrentCalls });
  const policy = createToolPolicy({ ...configuration.tools, mcpServers: servers ?? configuration.mcpServers });
  const identities = session === null ? null : createIdentityStore({ configuration: session });
  const artifacts = createFileStore({ directory: configuration.artifacts.directory });
  const datasets = createDatasetFileStore({ directory: path.join(configuration.artifacts.directory, "datasets") });

  const modelName = configuration.model ?? (servers === undefined ? null : "demo");

  return {
    configuration,
    runtime,
    sources,
    catalog,
    policy,
    identities,
    artifacts,
    datasets,
    modelName,
    openModel: (name = modelName, signal) => openModel(name, { configuration, environment, workingDirectory, signal }),
    openConversation({ subject = null, ...place } = {}) {
      const conversation = place.conversation ?? newConversation(place.tenant);
      const { tenant = conversation.evidence.tenant } = place;
      return {
        conversation,
        subject,
        catalog,
        policy,
        artifacts: place.artifacts ?? artifacts,
        datasets: place.datasets ?? datasets,
        identity: identities?.open({ tenant, contextId: conversation.id, subject }),
        codeMode: { engine: execute.engine, limits: limits.execute },
        budgets,
        toolTimeoutMs: limits.mcp.timeoutMs,
        onProbe,
      };
    },
    async [Symbol.asyncDispose]() {
      await catalog[Symbol.asyncDispose]();
      await Promise.all([...sources.values()].map((source) => source[Symbol.asyncDispose]()));
      await runtime.close();
    },
  };

  function newConversation(tenant: string = "local"): Conversation {
    return createConversation({
      evidence: createEvidenceStore({ conversationId: randomUUID(), tenant, budget: budgets }),
    });
  }
}

/** The sample server for users without a configuration: made-up market data, in a process of its own. */
export function bundledSample(): Readonly<Record<string, ServerConfiguration>> {
  const isBuilt = path.extname(import.meta.filename) === ".js";
  // A clone runs the TypeScript sources. A built package has the compiled example inside its own directory.
  const program = isBuilt ? "../examples/backends/market/market-server.js" : "../../examples/backends/market/market-server.ts";
  return { market: { command: process.execPath, args: [path.join(import.meta.dirname, program)] } };
}
