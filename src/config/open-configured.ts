import { randomUUID } from "node:crypto";
import path from "node:path";
import type { LanguageModel } from "ai";
import type { ArtifactStore } from "../artifacts/stored-artifact.ts";
import { createFileStore } from "../artifacts/artifact-store.ts";
import { cacheDirectory, searchPath } from "./directories.ts";
import type { Configuration, Environment, LoadedConfiguration, ServerConfiguration } from "./loaded-configuration.ts";
import { toolPolicyOf } from "./tool-policy-of.ts";
import { createRuntime, type Runtime } from "../create-runtime.ts";
import { createEvidenceStore } from "../evidence/create-evidence-store.ts";
import type { DatasetStore } from "../evidence/dataset/dataset.ts";
import { createDatasetFileStore } from "../evidence/dataset/dataset-store.ts";
import { createIdentityStore, type IdentityStore } from "../execute/identity/create-identity-store.ts";
import type { McpLimits } from "../tools/mcp/mcp-source-options.ts";
import { createMcpSource } from "../tools/mcp/create-mcp-source.ts";
import { openModel } from "../models/open-model.ts";
import type { ProbeSink } from "../protocol/probe.ts";
import type { ToolSource } from "../tools/backend-tool.ts";
import { createToolCatalog, type ToolCatalog } from "../tools/create-tool-catalog.ts";
import { createToolPolicy, type ToolPolicy } from "../tools/tool-policy.ts";
import type { TurnRequest } from "../turn/turn-request.ts";
import { createConversation, type Conversation } from "../turn/create-conversation.ts";

/** The parts that every way in shares, made from a configuration. Nothing is started before it is asked for; closing it ends what was. */
export interface Configured extends AsyncDisposable {
  readonly configuration: Configuration;
  readonly runtime: Runtime;
  /** By the name of the server. */
  readonly sources: ReadonlyMap<string, ToolSource>;
  readonly catalog: ToolCatalog;
  readonly policy: ToolPolicy;
  /** Null when the configuration has no identities, regions or profiles. */
  readonly identities: IdentityStore | null;
  readonly artifacts: ArtifactStore;
  readonly datasets: DatasetStore;
  /** That of the configuration unless one is named. Rejects with what to set when there is none. */
  openModel(name?: string | null, signal?: AbortSignal): Promise<Exclude<LanguageModel, string>>;
  /** All of a turn but its question and its model. */
  openConversation(options?: ConversationPlace): Omit<TurnRequest, "question" | "model">;
}

/** Whose conversation it is, and where what it gives is kept. */
export interface ConversationPlace {
  /** A new one unless told. */
  readonly conversation?: Conversation | undefined;
  readonly tenant?: string | undefined;
  /** Of the bearer token that came with the request. */
  readonly tokenHash?: string | null | undefined;
  readonly artifacts?: ArtifactStore | undefined;
  readonly datasets?: DatasetStore | undefined;
}

export interface ConfiguredOptions {
  readonly loaded: LoadedConfiguration;
  readonly environment: Environment;
  /** Instead of those of the configuration. */
  readonly servers?: Readonly<Record<string, ServerConfiguration>> | undefined;
  /** What the name of a model's script is counted from. */
  readonly workingDirectory?: string | undefined;
  readonly onProbe?: ProbeSink | undefined;
}

export function openConfigured({ loaded, environment, servers, workingDirectory, onProbe }: ConfiguredOptions): Configured {
  const { configuration } = loaded;
  const { limits, execute, budgets, session } = configuration;
  const runtime = createRuntime(toRuntimeOptions(configuration, environment));
  const entries = Object.entries(servers ?? configuration.mcpServers);
  const { maxConcurrentCalls, ...mcp } = limits.mcp;
  const sources = new Map(entries.map(([name, server]) => [name, toSource(name, server, { limits: mcp, environment, onProbe })]));
  const catalog = createToolCatalog({ sources: [...sources.values()], maxConcurrentCalls });
  const policy = createToolPolicy(toolPolicyOf(configuration));
  const identities = session === null ? null : createIdentityStore({ configuration: session });
  const artifacts = createFileStore({ directory: configuration.artifacts.directory });
  const datasets = createDatasetFileStore({ directory: path.join(configuration.artifacts.directory, "datasets") });

  return {
    configuration,
    runtime,
    sources,
    catalog,
    policy,
    identities,
    artifacts,
    datasets,
    openModel: (name = configuration.model, signal) => openModel(name, { configuration, environment, workingDirectory, signal }),
    openConversation({ tokenHash = null, ...place } = {}) {
      const conversation = place.conversation ?? newConversation(place.tenant);
      const { tenant = conversation.evidence.tenant } = place;
      return {
        conversation,
        catalog,
        policy,
        artifacts: place.artifacts ?? artifacts,
        datasets: place.datasets ?? datasets,
        identity: identities?.open({ tenant, contextId: conversation.id, tokenHash }),
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
    const { previewBytes, stepBytes } = budgets;
    return createConversation({
      evidence: createEvidenceStore({ conversationId: randomUUID(), tenant, budget: { previewBytes, stepBytes } }),
    });
  }
}

function toRuntimeOptions({ sandbox, limits, execute }: Configuration, environment: Environment): Parameters<typeof createRuntime>[0] {
  return {
    cacheDirectory: cacheDirectory(environment),
    searchPath: searchPath(environment),
    ...sandbox,
    limits: limits.sandbox,
    monty: { isolation: execute.isolation },
  };
}

interface SourceOptions {
  readonly limits: McpLimits;
  readonly environment: Environment;
  readonly onProbe: ProbeSink | undefined;
}

function toSource(name: string, entry: ServerConfiguration, { limits, environment, onProbe }: SourceOptions): ToolSource {
  const { expose: _expose, allow: _allow, ...server } = entry;
  return createMcpSource({ name, server, environment, onProbe, ...limits });
}
