import type { ArtifactEnvelope } from "../protocol/artifact.ts";
import type { TraceCall } from "../protocol/turn-result.ts";
import type { FinalResponse } from "./tools/final-response.ts";

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

/** One call, however it ended. */
export interface CallRecord extends BegunCall {
  readonly status: TraceCall["status"];
  readonly durationMs: number;
  /** What was kept of it, the main one first. */
  readonly aliases: readonly string[];
  readonly artifacts: readonly ArtifactEnvelope[];
  readonly failure?: CallFailure | undefined;
  readonly isEmpty: boolean;
}

export interface CallFailure {
  /** Null for a failure that said nothing that could be put in an envelope. */
  readonly kind: string | null;
  readonly code: string;
  readonly reason: string;
}

/** A cell that was run to its end. What an edit of it gave stands in its place. */
export interface CellRecord {
  readonly step: number;
  readonly tool: string;
  readonly code: string;
  readonly inputAliases: readonly string[];
  readonly reason: string;
  readonly resultAlias: string | null;
  readonly artifacts: readonly ArtifactEnvelope[];
  /** Why its figure is sparse; null when it is not. */
  readonly sparse: string | null;
  /** The step of the edit that took its place; null as long as it counts. */
  readonly replacedIn: number | null;
}

/** Everything that happened in a turn, as it happened. The result, the answer and the dataset are made from it and from nothing else. */
export interface Ledger {
  /** In the order in which they ended. */
  readonly calls: readonly CallRecord[];
  /** Those that an edit has replaced, too. */
  readonly cells: readonly CellRecord[];
  /** The cell that an edit would change and take the place of; null when there is none, or the last one failed and would be edited instead. */
  readonly editable: CellRecord | null;
  /** What counts now, in the order in which it was published. */
  readonly artifacts: readonly ArtifactEnvelope[];
  readonly tokens: { input: number; output: number };
  steps: number;
  sandboxMs: number;
  final: FinalResponse | null;
  /** Text that the model wrote instead of calling a tool. */
  text: string;
  /** Ids of calls that reached a tool, whether or not they are over. */
  readonly begun: ReadonlyMap<string, BegunCall>;
  beginCall(call: BegunCall): void;
  /** False for a call that was given up before, and is too late. */
  addCall(record: CallRecord): boolean;
  addChart(artifact: ArtifactEnvelope): void;
  /** A cell that counted. One that an edit gave takes the place of the cell that was edited. Gives the hashes of artifacts that do not count any more. */
  addCell(cell: Omit<CellRecord, "replacedIn">): string[];
  /** A cell that failed: an edit of a new one does not take the place of what came before it. */
  failCell(tool: string): void;
}

export function createLedger(): Ledger {
  const calls: CallRecord[] = [];
  const over = new Set<string>();
  const begun = new Map<string, BegunCall>();
  const cells: CellRecord[] = [];
  const artifacts: ArtifactEnvelope[] = [];
  let canBeEdited = false;
  const publish = (artifact: ArtifactEnvelope): void => {
    if (!artifacts.some(({ contentHash }) => contentHash === artifact.contentHash)) artifacts.push(artifact);
  };
  return {
    calls,
    cells,
    get editable() {
      return canBeEdited ? cells.at(-1)! : null;
    },
    artifacts,
    tokens: { input: 0, output: 0 },
    steps: 0,
    sandboxMs: 0,
    final: null,
    text: "",
    begun,
    beginCall: (call) => void begun.set(call.callId, call),
    addCall(record) {
      if (over.has(record.callId)) return false;
      over.add(record.callId);
      calls.push(record);
      return true;
    },
    addChart: publish,
    failCell(tool) {
      if (tool === "code_interpreter") canBeEdited = false;
    },
    addCell(cell) {
      const replaced = cell.tool === "python_code_edit" && canBeEdited ? cells.at(-1) : undefined;
      if (replaced !== undefined) cells[cells.length - 1] = { ...replaced, replacedIn: cell.step };
      canBeEdited = true;
      const kept = new Set(cell.artifacts.map(({ contentHash }) => contentHash));
      const gone = (replaced?.artifacts ?? []).map(({ contentHash }) => contentHash).filter((hash) => !kept.has(hash));
      for (const hash of gone) {
        const at = artifacts.findIndex(({ contentHash }) => contentHash === hash);
        if (at !== -1) artifacts.splice(at, 1);
      }
      cells.push({ ...cell, replacedIn: null });
      for (const artifact of cell.artifacts) publish(artifact);
      return gone;
    },
  };
}
