import type { ArtifactStore } from "../artifacts/artifact-store.ts";
import type { EvidenceStore } from "../evidence/evidence-store.ts";
import { createLimiter, type Limiter } from "../concurrency/create-limiter.ts";
import type { CodeInterpreterCall } from "./call-contract/code-interpreter-call.ts";
import type { PythonParser } from "./call-contract/validate-code-interpreter-contract.ts";
import type { CellSession } from "../cells/open-cell-session.ts";
import type { SandboxLimits } from "../sandbox/contract.ts";
import type { ProbeSink } from "../protocol/probe.ts";
import { UsageError } from "../errors/sluice-error.ts";

/** What the interpreter needs of a runtime. */
export interface SandboxSource {
  openCellSession(options?: { signal?: AbortSignal | undefined; queue?: Limiter }): Promise<CellSession>;
  readonly limits: SandboxLimits;
  /** Names that are globals of every cell. */
  helpers(): Promise<readonly string[]>;
  readonly parser: PythonParser;
}

/** One turn as the interpreter sees it: its evidence, its sandbox once it has one, and the last call, which can be edited. */
export interface InterpreterTurn {
  readonly id: string;
  readonly evidence: EvidenceStore;
  readonly artifacts: ArtifactStore;
  readonly source: SandboxSource;
  readonly onProbe: ProbeSink;
  /** Whether results and artifacts are kept; false while cells are only run again. */
  publishes: boolean;
  /** Live output of cells, for whoever shows it. */
  readonly onOutput?: (stream: "stdout" | "stderr", text: string) => void;
  /** Calls of a turn run one after the other, each whole: its checks, its cell and what it publishes. */
  readonly queue: Limiter;
  sandbox: TurnSandbox | null;
  last: LastCall | null;
  disposed: boolean;
}

export interface TurnSandbox {
  readonly session: Promise<CellSession>;
}

export interface LastCall {
  readonly call: CodeInterpreterCall;
  /** Whether its variables count, so that running it again means undoing it first. */
  readonly counted: boolean;
  /** It counted, and was undone for an edit that was aborted before it took its place. Who calls next is told. */
  readonly isUndone?: boolean;
}

export interface TurnOptions {
  readonly id: string;
  readonly evidence: EvidenceStore;
  readonly artifacts: ArtifactStore;
  readonly source: SandboxSource;
  readonly onProbe?: ProbeSink;
  readonly publishes?: boolean;
  readonly onOutput?: (stream: "stdout" | "stderr", text: string) => void;
}

export function createInterpreterTurn({ onProbe = () => {}, publishes = true, ...options }: TurnOptions): InterpreterTurn {
  return { ...options, onProbe, publishes, queue: createLimiter({ places: 1 }), sandbox: null, last: null, disposed: false };
}

/** The turn's sandbox, opened by the first valid call: a turn that never computes pays nothing. A failure is forgotten, so that the next call tries again. */
export function getOrCreateTurnSandbox(turn: InterpreterTurn, signal?: AbortSignal): TurnSandbox {
  if (turn.disposed) throw new UsageError({ code: "TURN_OVER", message: `The turn ${turn.id} is over.` });
  if (turn.sandbox === null) {
    const session = turn.source.openCellSession({ signal, queue: turn.queue });
    const sandbox: TurnSandbox = { session };
    turn.sandbox = sandbox;
    session.catch(() => {
      if (turn.sandbox === sandbox) turn.sandbox = null;
    });
  }
  return turn.sandbox;
}

/** Belongs into `finally`. Idempotent; ends whatever still runs. */
export async function disposeTurnSandbox(turn: InterpreterTurn): Promise<void> {
  turn.disposed = true;
  const { sandbox } = turn;
  turn.sandbox = null;
  const session = await sandbox?.session.catch(() => null);
  await session?.close();
}
