import type { ArtifactStore } from "../artifacts/contract.ts";
import type { EvidenceStore } from "../evidence/contract.ts";
import { createCallQueue, type CallQueue } from "./call-queue.ts";
import type { CodeInterpreterCall } from "./contract/code-interpreter-call.ts";
import type { PythonParser } from "./contract/python-parser.ts";
import type { Session } from "./open-session.ts";
import type { ProbeSink } from "../protocol/probe.ts";

/** What the interpreter needs of a runtime. */
export interface SandboxSource {
  openSession(options?: { signal?: AbortSignal }): Promise<Session>;
  /** The snapshot's Python packages, name to version. */
  packages(): Promise<Readonly<Record<string, string>>>;
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
  /** Live output of cells, for whoever shows it. */
  readonly onOutput?: (stream: "stdout" | "stderr", text: string) => void;
  /** Calls of a turn run one after the other, each whole: its checks, its cell and what it publishes. */
  readonly queue: CallQueue;
  sandbox: TurnSandbox | null;
  last: LastCall | null;
  disposed: boolean;
}

export interface TurnSandbox {
  readonly session: Promise<Session>;
  /** Aliases that it was given, and of each file its version. */
  readonly bound: Map<string, string>;
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
  readonly onOutput?: (stream: "stdout" | "stderr", text: string) => void;
}

export function createInterpreterTurn({ onProbe = () => {}, ...options }: TurnOptions): InterpreterTurn {
  return { ...options, onProbe, queue: createCallQueue(), sandbox: null, last: null, disposed: false };
}
