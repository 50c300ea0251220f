import type { StopReason } from "../../protocol/turn-result.ts";
import type { CallRecord } from "../ledger.ts";

/** Why the loop must not go on. */
export interface GuardTrip {
  readonly stopReason: Extract<
    StopReason,
    "bounded_repeat_guardrail" | "bounded_empty_result" | "bounded_upstream_failure" | "capability_miss"
  >;
  readonly detail: string;
}

/** Sees a loop that turns on the spot. Three times is enough: the same call, an empty result, a server that fails, a tool that is not there. */
export interface CallGuard {
  readonly tripped: GuardTrip | null;
  /**
   * Before a call is made: whether it may be. The third call with the same arguments may not. What one script calls again and again counts once: a loop
   * in a script ends with the script, and has a limit of its own.
   */
  admit(call: Pick<CallRecord, "tool" | "input" | "within">): boolean;
  /**
   * After a step, with all calls of it, those of scripts too: an answer in the same step outweighs the empty and failed ones beside it. A script that
   * found nothing counts as one empty answer, however often it asked.
   */
  judgeStep(calls: readonly CallRecord[]): void;
}

const TIMES = 3;
/** Failures that a model may mend by other arguments, before the server is taken to be at fault. */
const PLAIN_TIMES = 5;
const upstreamKinds: ReadonlySet<string> = new Set(["upstream_http", "rate_limited", "auth_error", "internal_error"]);

export function createCallGuard(): CallGuard {
  const asked = new Map<string, Set<string>>();
  const lastEnd = new Map<string, CallRecord>();
  const failing = new Map<string, { upstream: number; all: number }>();
  let empty = 0;
  let missing = 0;
  let tripped: GuardTrip | null = null;
  const trip = (found: GuardTrip): void => void (tripped ??= found);

  return {
    get tripped() {
      return tripped;
    },
    admit({ tool, input, within }) {
      const key = keyOf(tool, input);
      const askers = asked.get(key) ?? new Set();
      asked.set(key, askers);
      askers.add(within ?? `call ${askers.size}`);
      if (askers.size < TIMES) return true;
      trip(ofRepeat(tool, lastEnd.get(key)));
      return false;
    },
    judgeStep(calls) {
      for (const call of calls) lastEnd.set(keyOf(call.tool, call.input), call);
      const fetched = calls.filter(({ server }) => server !== undefined);
      judgeEmpty(fetched);
      for (const [server, ofServer] of Map.groupBy(fetched, (call) => call.server!)) judgeServer(server, ofServer);
      judgeMissing(calls);
    },
  };

  function judgeEmpty(calls: readonly CallRecord[]): void {
    const answered = calls.filter(({ status }) => status === "ok");
    const last = answered.findLast(({ isEmpty }) => isEmpty);
    const scripts = new Set(answered.flatMap(({ within }) => within ?? []));
    const ofModel = answered.filter(({ within }) => within === undefined);
    empty = answered.some(({ isEmpty }) => !isEmpty) ? 0 : empty + ofModel.length + scripts.size;
    if (empty >= TIMES && last !== undefined)
      trip({
        stopReason: "bounded_empty_result",
        detail: `Tools answered ${empty} times with nothing in it, the last one was ${last.tool}.`,
      });
  }

  function judgeServer(server: string, calls: readonly CallRecord[]): void {
    if (calls.some(({ status }) => status === "ok")) return void failing.delete(server);
    // Refused: its server is away, so the call could not even be tried.
    const failed = calls.filter((call) => call.status === "error" || (call.status === "refused" && isUpstream(call)));
    const before = failing.get(server) ?? { upstream: 0, all: 0 };
    const upstream = before.upstream + failed.filter(isUpstream).length;
    const all = before.all + failed.length;
    failing.set(server, { upstream, all });
    if (upstream >= TIMES || all >= PLAIN_TIMES) trip(ofServer(server, all, failed.at(-1)));
  }

  function judgeMissing(calls: readonly CallRecord[]): void {
    // A script that failed by such a call says the same again; it is there itself, so it was not refused.
    const notThere = calls.filter(({ failure, status }) => failure?.kind === "tool_not_found" && status === "refused");
    missing = calls.some(({ status }) => status === "ok") ? 0 : missing + notThere.length;
    const last = notThere.at(-1);
    if (missing >= TIMES && last !== undefined)
      trip({
        stopReason: "capability_miss",
        detail: `The model asked ${missing} times for tools that are not there, the last one was ${last.tool}.`,
      });
  }
}

function ofRepeat(tool: string, last: CallRecord | undefined): GuardTrip {
  if (last !== undefined && last.server !== undefined && isUpstream(last)) return ofServer(last.server, 2, last);
  if (last?.isEmpty && last.server !== undefined)
    return { stopReason: "bounded_empty_result", detail: `${tool} was asked the same three times and has nothing.` };
  return {
    stopReason: "bounded_repeat_guardrail",
    detail: `${tool} was called three times with the same arguments; the third call was not made.`,
  };
}

function ofServer(server: string, times: number, last: CallRecord | undefined): GuardTrip {
  const reason = last?.failure === undefined ? "" : ` The last time: ${last.failure.reason}`;
  return { stopReason: "bounded_upstream_failure", detail: `The server ${server} failed ${times} times in a row.${reason}` };
}

function isUpstream({ failure }: CallRecord): boolean {
  return failure !== undefined && failure.kind !== null && upstreamKinds.has(failure.kind);
}

function keyOf(tool: string, input: unknown): string {
  return `${tool} ${JSON.stringify(input, sorted) ?? "null"}`;
}

/** Two inputs that differ in the order of their keys are the same call. */
function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
