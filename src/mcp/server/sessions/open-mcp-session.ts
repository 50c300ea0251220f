import type { ArtifactStore } from "../../../artifacts/contract.ts";
import type { ConversationData } from "../../../data/contract.ts";
import { createConversationData } from "../../../data/create-conversation-data.ts";
import type { EvidenceStore } from "../../../evidence/contract.ts";
import { createEvidenceStore } from "../../../evidence/create-evidence-store.ts";
import type { InterpreterTurn } from "../../../interpreter/turn.ts";
import { disposeTurnSandbox } from "../../../interpreter/turn-sandbox.ts";
import type { Progress } from "../contract.ts";
import type { McpParts } from "../mcp-parts.ts";

/** One client's data and its sandbox. The data lives as long as the session; the sandbox may go earlier, and the next cell gets a new one. */
export interface McpSession extends AsyncDisposable {
  /** What nobody can guess. */
  readonly id: string;
  readonly tenant: string;
  readonly evidence: EvidenceStore;
  readonly data: ConversationData;
  readonly artifacts: ArtifactStore;
  turn(): InterpreterTurn;
  /** Around a cell. Cells run one after the other: live output belongs to the call that came first of those not yet over. Gives what ends it. */
  beginCell(progress: Progress): () => void;
  /** Ends what runs in the sandbox. The next answer says why it is gone. */
  freeSandbox(why: string): Promise<void>;
  /** Lets go of a sandbox that runs nothing, if it holds one. The next answer says why, and the next cell what became of its variables. */
  giveUpSandbox(why: string): Promise<void>;
  /** What happened since the last answer, once. */
  takeNotes(): string[];
}

export interface McpSessionOptions {
  readonly id: string;
  readonly tenant: string;
  readonly artifacts: ArtifactStore;
  readonly maxBytes: number;
  readonly onFirstCell: () => void;
  /** No cell runs in the sandbox any more. */
  readonly onLastCell: () => void;
}

export function openMcpSession(parts: McpParts, options: McpSessionOptions): McpSession {
  const { id, tenant, artifacts, maxBytes, onFirstCell, onLastCell } = options;
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

  async function close(): Promise<void> {
    isOver = true;
    await disposeTurnSandbox(turn);
  }

  return {
    id,
    tenant,
    evidence,
    data,
    artifacts,
    turn: () => turn,
    beginCell(progress) {
      if (listeners.push(progress) === 1) onFirstCell();
      return () => {
        listeners.splice(listeners.indexOf(progress), 1);
        if (listeners.length === 0) onLastCell();
      };
    },
    async freeSandbox(why) {
      if (isOver || turn.sandbox === null) return;
      const old = turn;
      turn = newTurn(old);
      notes.push(why);
      await disposeTurnSandbox(old);
    },
    async giveUpSandbox(why) {
      const session = await turn.sandbox?.session.catch(() => null);
      if ((await session?.release()) === true) notes.push(why);
    },
    takeNotes() {
      const taken = notes;
      notes = [];
      return taken;
    },
    [Symbol.asyncDispose]: close,
  };
}
