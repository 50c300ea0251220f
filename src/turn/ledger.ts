import type { ArtifactEnvelope } from "../protocol/artifact.ts";
import type { Gap, TraceCall } from "../protocol/turn-result.ts";

/** What is called, and by whom. */
export interface Call {
  readonly callId: string;
  readonly tool: string;
  /** Of a backend tool. */
  readonly server?: string | undefined;
  readonly intent?: string | undefined;
  readonly input: unknown;
  /** The call of `execute` whose script made it; the model made it when it is left out. */
  readonly within?: string | undefined;
}

export interface BegunCall extends Call {
  readonly step: number;
}

/** How a call ended. Only what is there is said. */
export interface CallEnd {
  readonly status: TraceCall["status"];
  /** 0 for a call that was never made; measured otherwise. */
  readonly durationMs?: number;
  /** What was kept of it, the main one first. */
  readonly aliases?: readonly string[];
  readonly artifacts?: readonly ArtifactEnvelope[];
  readonly failure?: CallFailure | undefined;
  readonly isEmpty?: boolean;
  /** Of a call that ran Python. */
  readonly cell?: CellRun | undefined;
}

/** One call, however it ended. */
export interface CallRecord extends BegunCall, Pick<CallEnd, "status" | "failure"> {
  readonly durationMs: number;
  readonly aliases: readonly string[];
  readonly artifacts: readonly ArtifactEnvelope[];
  readonly isEmpty: boolean;
}

export interface CallFailure {
  /** Null for a failure that said nothing that could be put in an envelope. */
  readonly kind: string | null;
  readonly code: string;
  readonly reason: string;
}

export interface CellRun {
  /** Whether it ran to its end, so that its variables count. */
  readonly isOk: boolean;
  readonly code: string;
  readonly inputAliases: readonly string[];
  readonly reason: string;
  /** Why its figure is sparse; null when it is not. */
  readonly sparse: string | null;
  readonly sandboxMs: number;
}

/** A cell that was run to its end. What an edit of it gave stands in its place. */
export interface CellRecord extends Omit<CellRun, "isOk" | "sandboxMs"> {
  readonly step: number;
  readonly tool: string;
  readonly resultAlias: string | null;
  readonly artifacts: readonly ArtifactEnvelope[];
  /** The step of the edit that took its place; null as long as it counts. */
  readonly replacedIn: number | null;
}

export interface Tokens {
  input: number;
  output: number;
}

/** Everything that happened in a turn, as it happened. The result, the answer and the dataset are made from it and from nothing else. */
export class Ledger {
  /** In the order in which they ended. */
  readonly calls: CallRecord[] = [];
  /** By id, in the order in which they began, whether or not they are over. */
  readonly begun = new Map<string, BegunCall>();
  /** Those that an edit has replaced, too. */
  readonly cells: CellRecord[] = [];
  /** What counts now, in the order in which it was published. */
  artifacts: readonly ArtifactEnvelope[] = [];
  /** Gaps that were met on the way. */
  readonly gaps: Gap[] = [];
  /** Of servers, as they were when the last step began. */
  serverGaps: readonly Gap[] = [];
  readonly tokens: Tokens = { input: 0, output: 0 };
  steps = 0;
  sandboxMs = 0;
  /** The answer that the model gave with `final_response`. */
  final: string | null = null;
  /** Text that the model wrote instead of calling a tool. */
  text = "";
  readonly #over = new Set<string>();
  #canBeEdited = false;

  /** The cell that an edit would change and take the place of; null when there is none, or the last one failed and would be edited instead. */
  get editable(): CellRecord | null {
    return this.#canBeEdited ? this.cells.at(-1)! : null;
  }

  begin(call: Call): BegunCall {
    const entry = { ...call, step: this.steps };
    this.begun.set(call.callId, entry);
    return entry;
  }

  /** Gives the hashes of artifacts that do not count any more; null for a call that was given up before, and is too late. */
  add(call: BegunCall, end: CallEnd & { readonly durationMs: number }): string[] | null {
    const { cell, status, durationMs, failure, aliases = [], artifacts = [], isEmpty = false } = end;
    if (this.#over.has(call.callId)) return null;
    this.#over.add(call.callId);
    const record = { ...call, status, durationMs, aliases, artifacts, failure, isEmpty };
    this.calls.push(record);
    const gone = cell === undefined ? [] : this.#addCell(record, cell);
    this.artifacts = this.artifacts.filter(({ contentHash }) => !gone.includes(contentHash));
    for (const artifact of artifacts)
      if (!this.artifacts.some(({ contentHash }) => contentHash === artifact.contentHash)) this.artifacts = [...this.artifacts, artifact];
    return gone;
  }

  #addCell({ step, tool, aliases, artifacts }: CallRecord, { isOk, sandboxMs, ...cell }: CellRun): string[] {
    this.sandboxMs += sandboxMs;
    if (!isOk) {
      if (tool === "code_interpreter") this.#canBeEdited = false; // an edit changes the failed one, and replaces nothing before it
      return [];
    }
    const replaced = tool === "python_code_edit" ? this.editable : null;
    if (replaced !== null) this.cells[this.cells.length - 1] = { ...replaced, replacedIn: step };
    this.#canBeEdited = true;
    this.cells.push({ ...cell, step, tool, resultAlias: aliases[0] ?? null, artifacts, replacedIn: null });
    const kept = new Set(artifacts.map(({ contentHash }) => contentHash));
    return (replaced?.artifacts ?? []).map(({ contentHash }) => contentHash).filter((hash) => !kept.has(hash));
  }
}
