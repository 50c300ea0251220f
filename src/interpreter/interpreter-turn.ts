import type { ArtifactStore } from "../artifacts/artifact-store.ts";
import type { CellSession } from "../cells/open-cell-session.ts";
import { createLimiter, type Limiter } from "../concurrency/create-limiter.ts";
import { UsageError } from "../errors/sluice-error.ts";
import type { EvidenceStore } from "../evidence/evidence-store.ts";
import type { Coverage } from "../protocol/coverage-event.ts";
import type { ProbeSink } from "../protocol/probe.ts";
import type { ByteCount } from "../sandbox/arriving-contents.ts";
import type { SandboxLimits } from "../sandbox/contract.ts";
import type { CodeInterpreterCall } from "./call-contract/code-interpreter-call.ts";
import type { PythonParser } from "./call-contract/python-parser.ts";

/** What the interpreter needs from a runtime. */
interface SandboxSource {
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
  /** Whether results and artifacts are stored. False while cells of an earlier turn are run again. */
  publishes: boolean;
  /** Bytes of pictures and data that the cells of the turn have sent. */
  readonly artifactBytes: ByteCount;
  /** Receives the output of cells while they run. */
  readonly onOutput?: (stream: "stdout" | "stderr", text: string) => void;
  /** Calls of a turn run one at a time: checks, cell and publishing. */
  readonly queue: Limiter;
  /** What successful cells noted about coverage: drawings of later cells and charts are compared with it. */
  coverage: readonly Coverage[];
  sandbox: TurnSandbox | null;
  last: LastCall | null;
  disposed: boolean;
}

export interface TurnSandbox {
  readonly cellSession: Promise<CellSession>;
}

interface LastCall {
  readonly call: CodeInterpreterCall;
  /** Whether its cell is part of the state. An edit undoes such a cell first. */
  readonly isCommitted: boolean;
  /** Its cell was undone for an edit that was aborted before it ran. The next result says so. */
  readonly isUndone?: boolean;
}

export type InterpreterTurnOptions = Pick<InterpreterTurn, "id" | "evidence" | "artifacts" | "source" | "onOutput"> &
  Partial<Pick<InterpreterTurn, "onProbe" | "publishes">>;

export function createInterpreterTurn({ onProbe = () => {}, publishes = true, ...options }: InterpreterTurnOptions): InterpreterTurn {
  const state = { artifactBytes: { bytes: 0 }, coverage: [], sandbox: null, last: null, disposed: false };
  return { ...options, ...state, onProbe, publishes, queue: createLimiter({ places: 1 }) };
}

/**
 * Returns the turn's sandbox. The first valid call opens it, so a turn that computes nothing costs nothing. After a failure, the next call tries again.
 * Throws TURN_OVER.
 */
export function getOrCreateTurnSandbox(turn: InterpreterTurn, signal?: AbortSignal): TurnSandbox {
  if (turn.disposed) throw new UsageError({ code: "TURN_OVER", message: `The turn ${turn.id} is over.` });
  if (turn.sandbox === null) {
    const cellSession = turn.source.openCellSession({ signal, queue: turn.queue });
    const sandbox: TurnSandbox = { cellSession };
    turn.sandbox = sandbox;
    cellSession.catch(() => {
      if (turn.sandbox === sandbox) turn.sandbox = null;
    });
  }
  return turn.sandbox;
}

/** Closes the turn's sandbox and ends a running cell. Call it in `finally`. Idempotent. */
export async function disposeTurnSandbox(turn: InterpreterTurn): Promise<void> {
  turn.disposed = true;
  const { sandbox } = turn;
  turn.sandbox = null;
  const cellSession = await sandbox?.cellSession.catch(() => null);
  await cellSession?.close();
}
