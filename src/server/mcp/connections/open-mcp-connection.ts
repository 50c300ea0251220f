import type { ArtifactStore } from "../../../artifacts/stored-artifact.ts";
import { createConversationData } from "../../../data/create-conversation-data.ts";
import { createEvidenceStore } from "../../../evidence/create-evidence-store.ts";
import { disposeTurnSandbox, type InterpreterTurn } from "../../../interpreter/turn.ts";
import type { McpParts, Progress } from "../mcp-parts.ts";

/** One client's data and its sandbox. The data lives as long as the session; the sandbox may go earlier, and the next cell gets a new one. */
export type McpConnection = ReturnType<typeof openMcpConnection>;

export interface McpConnectionOptions {
  /** What nobody can guess. */
  readonly id: string;
  readonly tenant: string;
  readonly artifacts: ArtifactStore;
  readonly maxBytes: number;
  readonly onFirstCell: () => void;
  /** No cell runs in the sandbox any more. */
  readonly onLastCell: () => void;
}

export function openMcpConnection(parts: McpParts, { id, tenant, artifacts, maxBytes, onFirstCell, onLastCell }: McpConnectionOptions) {
  const { previewBytes, stepBytes } = parts.configuration.budgets;
  const evidence = createEvidenceStore({ conversationId: id, tenant, budget: { previewBytes, stepBytes, totalBytes: maxBytes } });
  const data = createConversationData({ evidence, tables: parts.tables, files: parts.files });
  const listeners: Progress[] = [];
  let notes: string[] = [];
  let turn = newTurn(null);
  let isOver = false;

  /** The last cell can still be edited in a new sandbox, where its variables do not count. */
  function newTurn(before: InterpreterTurn | null): InterpreterTurn {
    const made = parts.runtime.createTurn({
      id,
      evidence,
      artifacts,
      onOutput: (_stream, text) => listeners[0]?.say(text),
      ...(parts.onProbe === undefined ? {} : { onProbe: parts.onProbe }),
    });
    made.last = before === null || before.last === null ? null : { call: before.last.call, counted: false };
    return made;
  }

  return {
    id,
    tenant,
    evidence,
    data,
    artifacts,
    turn: (): InterpreterTurn => turn,
    /** Around a cell. Cells run one after the other: live output belongs to the call that came first of those not yet over. Gives what ends it. */
    beginCell(progress: Progress): () => void {
      if (listeners.push(progress) === 1) onFirstCell();
      return () => {
        listeners.splice(listeners.indexOf(progress), 1);
        if (listeners.length === 0) onLastCell();
      };
    },
    /** Ends what runs in the sandbox. The next answer says why it is gone. */
    async freeSandbox(why: string): Promise<void> {
      if (isOver || turn.sandbox === null) return;
      const old = turn;
      turn = newTurn(old);
      notes.push(why);
      await disposeTurnSandbox(old);
    },
    /** Lets go of a sandbox that runs nothing, if it holds one. The next answer says why, and the next cell what became of its variables. */
    async giveUpSandbox(why: string): Promise<void> {
      const session = await turn.sandbox?.session.catch(() => null);
      if ((await session?.release()) === true) notes.push(why);
    },
    /** What happened since the last answer, once. */
    takeNotes(): string[] {
      const taken = notes;
      notes = [];
      return taken;
    },
    async [Symbol.asyncDispose](): Promise<void> {
      isOver = true;
      await disposeTurnSandbox(turn);
    },
  };
}
