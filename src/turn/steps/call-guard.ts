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

/** Stops a turn that makes no progress: after three identical calls, empty results, failures of one server, or requests for unknown tools. */
export interface CallGuard {
  readonly tripped: GuardTrip | null;
  /**
   * Whether a requested call may run. Refuses the third call with the same arguments. Identical calls of one script count once: its loop ends with the
   * script, which has a call limit of its own.
   */
  admit(call: Pick<CallRecord, "tool" | "input" | "within">): boolean;
  /**
   * Takes all calls of a step, including those of scripts. A result with data outweighs empty results and failures of the same step. The empty results of
   * one script count once.
   */
  judgeStep(calls: readonly CallRecord[]): void;
}

const MAX_TIMES = 3;
/** Failures whose cause may be the arguments, which the model can correct. */
const MAX_OTHER_FAILURES = 5;
const upstreamKinds: ReadonlySet<string> = new Set(["upstream_http", "rate_limited", "auth_error", "internal_error"]);

export function createCallGuard(): CallGuard {
  /** Who requested each call: a script, or one entry per request of the model. */
  const requesters = new Map<string, Set<string>>();
  const lastRecords = new Map<string, CallRecord>();
  const failuresByServer = new Map<string, { upstream: number; all: number }>();
  let emptyResults = 0;
  let unknownTools = 0;
  let tripped: GuardTrip | null = null;
  const trip = (reason: GuardTrip): void => void (tripped ??= reason);

  return {
    get tripped() {
      return tripped;
    },
    admit({ tool, input, within }) {
      const key = keyOf(tool, input);
      const known = requesters.get(key) ?? new Set();
      requesters.set(key, known);
      known.add(within ?? `call ${known.size}`);
      if (known.size < MAX_TIMES) return true;
      trip(toRepeatTrip(tool, lastRecords.get(key)));
      return false;
    },
    judgeStep(calls) {
      for (const call of calls) lastRecords.set(keyOf(call.tool, call.input), call);
      const backendCalls = calls.filter(({ server }) => server !== undefined);
      judgeEmptyResults(backendCalls);
      for (const [server, callsOfServer] of Map.groupBy(backendCalls, (call) => call.server!)) judgeServer(server, callsOfServer);
      judgeUnknownTools(calls);
    },
  };

  function judgeEmptyResults(calls: readonly CallRecord[]): void {
    const succeeded = calls.filter(({ status }) => status === "ok");
    const lastEmpty = succeeded.findLast(({ isEmpty }) => isEmpty);
    const scripts = new Set(succeeded.flatMap(({ within }) => within ?? []));
    const byModel = succeeded.filter(({ within }) => within === undefined);
    emptyResults = succeeded.some(({ isEmpty }) => !isEmpty) ? 0 : emptyResults + byModel.length + scripts.size;
    if (emptyResults >= MAX_TIMES && lastEmpty !== undefined)
      trip({
        stopReason: "bounded_empty_result",
        detail: `Tools returned ${emptyResults} empty results in a row. The last one was ${lastEmpty.tool}.`,
      });
  }

  function judgeServer(server: string, calls: readonly CallRecord[]): void {
    if (calls.some(({ status }) => status === "ok")) return void failuresByServer.delete(server);
    // A call is also refused when its server is unavailable. That counts as a failure of the server.
    const failed = calls.filter((call) => call.status === "error" || (call.status === "refused" && isUpstreamFailure(call)));
    const before = failuresByServer.get(server) ?? { upstream: 0, all: 0 };
    const upstream = before.upstream + failed.filter(isUpstreamFailure).length;
    const all = before.all + failed.length;
    failuresByServer.set(server, { upstream, all });
    if (upstream >= MAX_TIMES || all >= MAX_OTHER_FAILURES) trip(toServerTrip(server, all, failed.at(-1)));
  }

  function judgeUnknownTools(calls: readonly CallRecord[]): void {
    // Only the refused call counts, not the script that failed because of it with the same error.
    const unknown = calls.filter(({ failure, status }) => failure?.kind === "tool_not_found" && status === "refused");
    unknownTools = calls.some(({ status }) => status === "ok") ? 0 : unknownTools + unknown.length;
    const last = unknown.at(-1);
    if (unknownTools >= MAX_TIMES && last !== undefined)
      trip({
        stopReason: "capability_miss",
        detail: `The model requested unknown tools ${unknownTools} times. The last one was ${last.tool}.`,
      });
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
