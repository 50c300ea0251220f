import type { StopReason } from "../../protocol/turn-result.ts";
import type { CallRecord } from "../ledger.ts";

/** Why the guard stops the turn. */
export interface GuardTrip {
  readonly stopReason: Extract<
    StopReason,
    "bounded_repeat_guardrail" | "bounded_empty_result" | "bounded_upstream_failure" | "capability_miss"
  >;
  readonly detail: string;
}

const MAX_TIMES = 3;
/** Failures whose cause may be the arguments, which the model can correct. */
const MAX_OTHER_FAILURES = 5;
const upstreamKinds: ReadonlySet<string> = new Set(["upstream_http", "rate_limited", "auth_error", "internal_error"]);

/** Stops a turn that makes no progress: after three identical calls, empty results, failures of one server, or requests for unknown tools. */
export class CallGuard {
  /** Null while the turn may continue. */
  tripped: GuardTrip | null = null;
  /** Who requested each call: a script, or one entry per request of the model. */
  readonly #requesters = new Map<string, Set<string>>();
  readonly #lastRecords = new Map<string, CallRecord>();
  readonly #failuresByServer = new Map<string, { upstream: number; all: number }>();
  #emptyResults = 0;
  #unknownTools = 0;

  /**
   * Whether a requested call may run. Refuses the third call with the same arguments. Identical calls of one script count once: its loop ends with the
   * script, which has a call limit of its own.
   */
  admit({ tool, input, within }: Pick<CallRecord, "tool" | "input" | "within">): boolean {
    const key = keyOf(tool, input);
    const requesters = this.#requesters.get(key) ?? new Set();
    this.#requesters.set(key, requesters);
    requesters.add(within ?? `call ${requesters.size}`);
    if (requesters.size < MAX_TIMES) return true;
    this.tripped ??= toRepeatTrip(tool, this.#lastRecords.get(key));
    return false;
  }

  /**
   * Takes all calls of a step, including those of scripts. A result with data outweighs empty results and failures of the same step. The empty results of
   * one script count once.
   */
  judgeStep(calls: readonly CallRecord[]): void {
    for (const call of calls) this.#lastRecords.set(keyOf(call.tool, call.input), call);
    const backendCalls = calls.filter(({ server }) => server !== undefined);
    this.#judgeEmptyResults(backendCalls);
    for (const [server, callsOfServer] of Map.groupBy(backendCalls, (call) => call.server!)) this.#judgeServer(server, callsOfServer);
    this.#judgeUnknownTools(calls);
  }

  #judgeEmptyResults(calls: readonly CallRecord[]): void {
    const succeeded = calls.filter(({ status }) => status === "ok");
    const last = succeeded.at(-1);
    const scripts = new Set(succeeded.flatMap(({ within }) => within ?? []));
    const byModel = succeeded.filter(({ within }) => within === undefined);
    this.#emptyResults = succeeded.some(({ isEmpty }) => !isEmpty) ? 0 : this.#emptyResults + byModel.length + scripts.size;
    if (this.#emptyResults < MAX_TIMES || last === undefined) return;
    const detail = `Tools returned ${this.#emptyResults} empty results in a row. The last one was ${last.tool}.`;
    this.tripped ??= { stopReason: "bounded_empty_result", detail };
  }

  #judgeServer(server: string, calls: readonly CallRecord[]): void {
    if (calls.some(({ status }) => status === "ok")) return void this.#failuresByServer.delete(server);
    // A call is also refused when its server is unavailable. That counts as a failure of the server.
    const failed = calls.filter((call) => call.status === "error" || (call.status === "refused" && isUpstreamFailure(call)));
    const before = this.#failuresByServer.get(server) ?? { upstream: 0, all: 0 };
    const upstream = before.upstream + failed.filter(isUpstreamFailure).length;
    const all = before.all + failed.length;
    this.#failuresByServer.set(server, { upstream, all });
    if (upstream >= MAX_TIMES || all >= MAX_OTHER_FAILURES) this.tripped ??= toServerTrip(server, all, failed.at(-1));
  }

  #judgeUnknownTools(calls: readonly CallRecord[]): void {
    // Only the refused call counts, not the script that failed because of it with the same error.
    const unknown = calls.filter(({ failure, status }) => failure?.kind === "tool_not_found" && status === "refused");
    this.#unknownTools = calls.some(({ status }) => status === "ok") ? 0 : this.#unknownTools + unknown.length;
    const last = unknown.at(-1);
    if (this.#unknownTools < MAX_TIMES || last === undefined) return;
    const detail = `The model requested unknown tools ${this.#unknownTools} times. The last one was ${last.tool}.`;
    this.tripped ??= { stopReason: "capability_miss", detail };
  }
}

/** Names the cause of the repetition, if the earlier calls show one. */
function toRepeatTrip(tool: string, last: CallRecord | undefined): GuardTrip {
  if (last !== undefined && last.server !== undefined && isUpstreamFailure(last)) return toServerTrip(last.server, 2, last);
  if (last?.isEmpty && last.server !== undefined)
    return { stopReason: "bounded_empty_result", detail: `${tool} was called three times with the same arguments and returned nothing.` };
  return { stopReason: "bounded_repeat_guardrail", detail: describeRepeat(tool) };
}

export function describeRepeat(tool: string): string {
  return `${tool} was called three times with the same arguments. The third call was refused.`;
}

function toServerTrip(server: string, times: number, last: CallRecord | undefined): GuardTrip {
  const reason = last?.failure === undefined ? "" : ` Last error: ${last.failure.reason}`;
  return { stopReason: "bounded_upstream_failure", detail: `The server ${server} failed ${times} times in a row.${reason}` };
}

function isUpstreamFailure({ failure }: CallRecord): boolean {
  return failure !== undefined && failure.kind !== null && upstreamKinds.has(failure.kind);
}

function keyOf(tool: string, input: unknown): string {
  return `${tool} ${JSON.stringify(input, sortKeys) ?? "null"}`;
}

/** Two inputs that differ only in the order of their keys are the same call. */
function sortKeys(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
