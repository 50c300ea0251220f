import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { createRuntime, type Runtime } from "../src/create-runtime.ts";
import { cacheDirectory } from "../src/config/environment.ts";
import type { ConversationData, DataAnswer } from "../src/data/conversation-data.ts";
import { createConversationData } from "../src/data/create-conversation-data.ts";
import { openDataFiles } from "../src/data/open-data-files.ts";
import { createTables, type Tables } from "../src/data/tables/create-tables.ts";
import type { ToolError } from "../src/errors/tool-error.ts";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import type { EvidenceStore } from "../src/evidence/evidence-store.ts";

/** A folder for data files, a runtime with the default driver, and its tables. */
export interface DataBench extends AsyncDisposable {
  readonly folder: string;
  readonly runtime: Runtime;
  readonly tables: Tables;
  /** Opens a conversation with the files of the folder, or of the given paths. */
  open(paths?: readonly string[]): Promise<ConversationData & { readonly evidence: EvidenceStore }>;
}

export function openDataBench(): DataBench {
  const folder = mkdtempSync(path.join(os.tmpdir(), "sluice-data-"));
  const runtime = createRuntime({ cacheDirectory: cacheDirectory(), poolSize: 0 });
  const tables = createTables({ openCellSession: runtime.openCellSession, gate: runtime.gate });
  return {
    folder,
    runtime,
    tables,
    async open(paths = [folder]) {
      const files = await openDataFiles({ paths, maxFileBytes: runtime.limits.inputBytes });
      return createConversationData({ evidence: createEvidenceStore(), tables, files });
    },
    async [Symbol.asyncDispose]() {
      await tables.close();
      await runtime.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Returns the parsed answer, or the code and summary of a refusal. */
export function contentOf(answer: DataAnswer): unknown {
  return answer.ok ? JSON.parse(answer.json) : [answer.toolError.error_code, answer.toolError.summary];
}

export function toolErrorOf(answer: DataAnswer): ToolError {
  if (answer.ok) throw new Error(`the call was not refused: ${answer.json}`);
  return answer.toolError;
}

/** Runs Python in a sandbox and returns the file `made` that the code wrote. */
export async function makeFile(runtime: Runtime, code: string): Promise<Buffer> {
  await using cellSession = await runtime.openCellSession();
  const { status, resultJson, error } = await cellSession.run({
    code: `${code}\nimport base64\nset_result(base64.b64encode(open("made", "rb").read()).decode())`,
  });
  if (status !== "ok" || resultJson === null) throw new Error(`${status}: ${error?.message}`);
  return Buffer.from(JSON.parse(resultJson) as string, "base64");
}
