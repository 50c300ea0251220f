import type { ArtifactStore } from "../../../artifacts/artifact-store.ts";
import type { ConversationData } from "../../../data/conversation-data.ts";
import { createConversationData } from "../../../data/create-conversation-data.ts";
import { createEvidenceStore } from "../../../evidence/create-evidence-store.ts";
import type { EvidenceStore } from "../../../evidence/evidence-store.ts";
import { disposeTurnSandbox, type InterpreterTurn } from "../../../interpreter/interpreter-turn.ts";
import type { McpParts } from "../mcp-parts.ts";
import type { ProgressReporter } from "../surface.ts";

export interface McpConnectionOptions {
  /** Random, because it gives access to the connection's data. */
  readonly id: string;
  readonly tenant: string;
  readonly artifacts: ArtifactStore;
  readonly maxBytes: number;
  /** A cell starts while no other runs. */
  readonly onBusy: () => void;
  /** The last running cell ended. */
  readonly onIdle: () => void;
}

/** One client's data and sandbox. The data lives as long as the connection; the sandbox can be freed earlier, and the next cell gets a new one. */
export class McpConnection implements AsyncDisposable {
  readonly id: string;
  readonly tenant: string;
  readonly artifacts: ArtifactStore;
  readonly evidence: EvidenceStore;
  readonly data: ConversationData;
  readonly #parts: McpParts;
  readonly #options: McpConnectionOptions;
  /** Of the running and queued cells, in the order of their calls. */
  readonly #reporters: ProgressReporter[] = [];
  #notes: string[] = [];
  #turn: InterpreterTurn;
  #isDisposed = false;

  constructor(parts: McpParts, options: McpConnectionOptions) {
    const { id, tenant, artifacts, maxBytes } = options;
    this.id = id;
    this.tenant = tenant;
    this.artifacts = artifacts;
    this.evidence = createEvidenceStore({ conversationId: id, tenant, budget: { ...parts.configuration.budgets, totalBytes: maxBytes } });
    this.data = createConversationData({ evidence: this.evidence, tables: parts.tables, files: parts.files });
    this.#parts = parts;
    this.#options = options;
    this.#turn = this.#createTurn(null);
  }

  get turn(): InterpreterTurn {
    return this.#turn;
  }

  /**
   * Call before a cell; the returned function ends it. Cells run one at a time, so live output goes to the oldest call. A connection has no turns, so what
   * a turn may emit counts for each call.
   */
  beginCell(progress: ProgressReporter): () => void {
    this.#turn.artifactBytes.bytes = 0;
    if (this.#reporters.push(progress) === 1) this.#options.onBusy();
    return () => {
      this.#reporters.splice(this.#reporters.indexOf(progress), 1);
      if (this.#reporters.length === 0) this.#options.onIdle();
    };
  }

  /** Kills the sandbox, even when a cell runs in it. The next result carries the note. */
  async discardSandbox(note: string): Promise<void> {
    if (this.#isDisposed || this.#turn.sandbox === null) return;
    const old = this.#turn;
    this.#turn = this.#createTurn(old);
    this.#notes.push(note);
    await disposeTurnSandbox(old);
  }

  /** Frees the sandbox if it runs nothing. The next result carries the note; the next cell says what happened to its variables. */
  async releaseIdleSandbox(note: string): Promise<void> {
    const cellSession = await this.#turn.sandbox?.cellSession.catch(() => null);
    if ((await cellSession?.release()) === true) this.#notes.push(note);
  }

  /** Adds a note to the next result. */
  note(text: string): void {
    this.#notes.push(text);
  }

  /** Returns the notes since the last result and forgets them. */
  takeNotes(): string[] {
    const notes = this.#notes;
    this.#notes = [];
    return notes;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true;
    await disposeTurnSandbox(this.#turn);
  }

  /** `python_code_edit` can still edit the last cell of the previous turn, but cannot count on its variables. */
  #createTurn(previous: InterpreterTurn | null): InterpreterTurn {
    const { runtime, onProbe } = this.#parts;
    const turn = runtime.createTurn({
      id: this.id,
      evidence: this.evidence,
      artifacts: this.artifacts,
      onOutput: (_stream, text) => this.#reporters[0]?.report(text),
      onProbe,
    });
    const last = previous?.last ?? null;
    turn.last = last === null ? null : { call: last.call, isCommitted: false };
    return turn;
  }
}
