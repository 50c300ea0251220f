import { randomUUID } from "node:crypto";
import path from "node:path";
import { createFileStore } from "../artifacts/create-file-store.ts";
import { bundledSample } from "../config/bundled-sample.ts";
import { cacheDirectory } from "../config/cache-directory.ts";
import type { Environment, LoadedConfiguration, ServerConfiguration } from "../config/contract.ts";
import { searchPath } from "../config/search-path.ts";
import { toolPolicyOf } from "../config/tool-policy-of.ts";
import { createRuntime, type Runtime } from "../create-runtime.ts";
import { createEvidenceStore } from "../evidence/create-evidence-store.ts";
import { createDatasetFileStore } from "../evidence/dataset/create-dataset-file-store.ts";
import { createSessionStore } from "../execute/session/create-session-store.ts";
import { createMcpSource } from "../mcp/client/create-mcp-source.ts";
import type { ProbeSink } from "../protocol/probe.ts";
import type { ToolSource } from "../tools/contract.ts";
import { createToolCatalog } from "../tools/create-tool-catalog.ts";
import { createToolPolicy } from "../tools/tool-policy.ts";
import type { TurnRequest } from "../turn/contract.ts";
import { createConversation } from "../turn/create-conversation.ts";

/** What turns need, made from a configuration. Nothing is started before it is asked for; closing it ends what was. */
export interface ConfiguredTurns extends AsyncDisposable {
  readonly runtime: Runtime;
  /** All of a turn but its question and its model. Each call is a conversation of its own. */
  newConversation(): Omit<TurnRequest, "question" | "model">;
}

export interface ConfiguredTurnsOptions {
  readonly loaded: LoadedConfiguration;
  readonly environment: Environment;
  readonly onProbe?: ProbeSink | undefined;
}

export function openConfiguredTurns({ loaded, environment, onProbe }: ConfiguredTurnsOptions): ConfiguredTurns {
  const { configuration, path: file } = loaded;
  const { sandbox, limits, execute, artifacts, budgets, session } = configuration;
  const runtime = createRuntime({
    cacheDirectory: cacheDirectory(environment),
    searchPath: searchPath(environment),
    driver: sandbox.driver,
    limits: limits.sandbox,
    poolSize: sandbox.poolSize,
    queueDeadlineMs: sandbox.queueDeadlineMs,
    monty: { isolation: execute.isolation },
    ...(sandbox.maxSandboxes === undefined ? {} : { maxSandboxes: sandbox.maxSandboxes }),
  });
  const servers = file === null ? bundledSample() : configuration.mcpServers;
  const sources = Object.entries(servers).map(([name, server]) => toSource(name, server, { limits: limits.mcp, environment, onProbe }));
  const catalog = createToolCatalog({ sources });
  const policy = createToolPolicy(toolPolicyOf(configuration));
  const sessions = session === null ? null : createSessionStore({ configuration: session });

  return {
    runtime,
    newConversation() {
      const id = randomUUID();
      const { previewBytes, stepBytes } = budgets;
      return {
        conversation: createConversation({ evidence: createEvidenceStore({ conversationId: id, budget: { previewBytes, stepBytes } }) }),
        catalog,
        policy,
        artifacts: createFileStore({ directory: artifacts.directory }),
        datasets: createDatasetFileStore({ directory: path.join(artifacts.directory, "datasets") }),
        session: sessions?.open({ tenant: "local", sessionId: id, tokenHash: null }),
        codeMode: { engine: execute.engine, limits: limits.execute },
        budgets,
        toolTimeoutMs: limits.mcp.timeoutMs,
        onProbe,
      };
    },
    async [Symbol.asyncDispose]() {
      await catalog[Symbol.asyncDispose]();
      await Promise.all(sources.map((source) => source[Symbol.asyncDispose]()));
      await runtime.close();
    },
  };
}

interface SourceOptions {
  readonly limits: LoadedConfiguration["configuration"]["limits"]["mcp"];
  readonly environment: Environment;
  readonly onProbe: ProbeSink | undefined;
}

function toSource(name: string, entry: ServerConfiguration, { limits, environment, onProbe }: SourceOptions): ToolSource {
  const { expose: _expose, allow: _allow, ...server } = entry;
  return createMcpSource({ name, server, environment, onProbe, ...limits });
}
