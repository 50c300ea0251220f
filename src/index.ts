/** The package `sluice`: sandboxed Python, evidence, tools and code mode, without a language model. Only names that an entry exports are public. */
import "./require-node.ts";
export { createRuntime, type Runtime, type RuntimeOptions } from "./create-runtime.ts";
export { cacheDirectory } from "./config/environment.ts";
export { defaultLimits, withLimits } from "./sandbox/limits.ts";
export type { SandboxLimits } from "./sandbox/contract.ts";

export type { CellRequest, CellSession } from "./cells/open-cell-session.ts";
export type { InputFormat, CellInput } from "./cells/cell-inputs.ts";
export type { CellOutcome, CellStatus } from "./protocol/outcome.ts";
export { runPythonInSandbox } from "./interpreter/run-python-in-sandbox.ts";

export type { InterpreterTurn } from "./interpreter/interpreter-turn.ts";
export { runCodeInterpreter } from "./interpreter/code-interpreter.ts";
export type { ToolResult } from "./interpreter/tool-result.ts";
export { runPythonCodeEdit } from "./interpreter/python-code-edit.ts";
export { validateCodeInterpreterContract } from "./interpreter/call-contract/validate-code-interpreter-contract.ts";
export { disposeTurnSandbox, getOrCreateTurnSandbox } from "./interpreter/interpreter-turn.ts";

export { createEvidenceStore } from "./evidence/create-evidence-store.ts";
export { evidenceRecordSchema, toEvidenceRecord, type EvidenceRecord } from "./evidence/evidence-record.ts";
export type { RestoredItem } from "./evidence/kept-item.ts";
export type { EvidenceItem, EvidenceStore, Preview, ToolOutput } from "./evidence/evidence-store.ts";
export { createFileStore, createMemoryStore, type ArtifactStore } from "./artifacts/artifact-store.ts";
export type { ArtifactEnvelope, ChartArtifact, ImageArtifact } from "./protocol/artifact.ts";
export { createDatasetFileStore } from "./evidence/dataset/create-dataset-store.ts";
export { createDatasetMemoryStore } from "./evidence/dataset/create-dataset-store.ts";
export type { DatasetReader, DatasetStore } from "./evidence/dataset/dataset.ts";

export { openDataFiles, type DataFilesOptions } from "./data/open-data-files.ts";
export { createTables, type Tables, type TablesOptions } from "./data/tables/create-tables.ts";
export { createConversationData } from "./data/create-conversation-data.ts";
export { dataTools, type DataTool } from "./data/data-tools.ts";
export { createUploadStore, type UploadStoreOptions } from "./data/create-upload-store.ts";
export { openAliasDownload, openTableDownload, type TableDownloadOptions } from "./data/open-table-download.ts";
export type { ConversationData, DataAnswer, DataFiles, StoredUpload, TableDownload, UploadStore } from "./data/conversation-data.ts";

export { createToolCatalog, type ToolCatalog } from "./tools/create-tool-catalog.ts";
export { createToolPolicy, type ToolPolicy } from "./tools/tool-policy.ts";
export { callBackendTool, type BackendReply } from "./tools/call-backend-tool.ts";
export { createLocalSource, type LocalTool } from "./tools/create-local-source.ts";
export type { BackendTool, ToolSource } from "./tools/backend-tool.ts";
export { createMcpSource } from "./tools/mcp/create-mcp-source.ts";
export type { McpServerEntry, McpSourceOptions } from "./tools/mcp/mcp-source-options.ts";
export type { CodeModeTool } from "./execute/create-code-mode.ts";
export { createIdentityStore, type IdentityStore } from "./execute/identity/create-identity-store.ts";
export type { IdentityConfiguration } from "./execute/identity/identity-configuration.ts";
export type { IdentityContext } from "./execute/identity/identity-context.ts";

export { NoSandboxError, SandboxLostError, SluiceError, UsageError } from "./errors/sluice-error.ts";
export type { ToolError } from "./errors/tool-error.ts";
