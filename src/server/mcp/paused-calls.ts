import { randomBytes } from "node:crypto";
import { setImmediate as nextIteration } from "node:timers/promises";
import { inputRequired, type CallToolResult, type InputRequiredResult, type InputRequests } from "@modelcontextprotocol/server";
import type { Approval, ApproveCall } from "../../tools/tool-policy.ts";
import { readApproval, toApprovalQuestion, toInputRequest, type ApprovalQuestion } from "./ask-client.ts";
import { afterTimeout, type McpCaller, type Schedule } from "./mcp-parts.ts";
import type { ProgressReporter } from "./surface.ts";

/** One request of a client: the first of a call, or one that brings answers. */
export interface CallRound {
  readonly signal: AbortSignal;
  readonly progress: ProgressReporter;
}

export interface PausableCall extends CallRound {
  readonly approve: ApproveCall;
}

type RoundResult = CallToolResult | InputRequiredResult;

/** How long a client may take to answer. */
export const ANSWER_MS = 10 * 60_000;
/** Clients give up after ten rounds by default. */
const MAX_ROUNDS = 8;
const MAX_PAUSED_PER_TENANT = 100;

/**
 * Calls that wait for a person's approval, for clients of protocol 2026: the server cannot send them a request, so it answers with its questions, and the
 * client repeats the call with the answers. The call goes on in between: a script waits in the middle, and what it did is not repeated.
 */
export class PausedCalls implements Disposable {
  readonly #after: Schedule;
  /** By the token that the client returns with its answers. */
  readonly #calls = new Map<string, { readonly call: PausedCall; readonly caller: McpCaller; readonly cancelTimer: () => void }>();

  constructor({ after = afterTimeout }: { readonly after?: Schedule | undefined } = {}) {
    this.#after = after;
  }

  /** Starts a call. Returns its result, or the questions that come first. */
  async start(run: (call: PausableCall) => Promise<CallToolResult>, round: CallRound, caller: McpCaller): Promise<RoundResult> {
    const isFull = [...this.#calls.values()].filter((paused) => paused.caller.tenant === caller.tenant).length >= MAX_PAUSED_PER_TENANT;
    return await this.#continue(new PausedCall(run, round, isFull ? 0 : MAX_ROUNDS), round, caller);
  }

  /** Continues a call with the client's answers. Null if the token is unknown: the call has ended, or it belongs to another tenant or subject. */
  async resume(
    token: string,
    answers: Readonly<Record<string, unknown>>,
    round: CallRound,
    caller: McpCaller,
  ): Promise<RoundResult | null> {
    const paused = this.#calls.get(token);
    if (paused?.caller.tenant !== caller.tenant || paused.caller.subject !== caller.subject) return null;
    this.#calls.delete(token);
    paused.cancelTimer();
    paused.call.answer(answers);
    return await this.#continue(paused.call, round, caller);
  }

  async #continue(call: PausedCall, round: CallRound, caller: McpCaller): Promise<RoundResult> {
    const requests = await call.next(round);
    if (requests === null) return await call.result;
    const token = randomBytes(18).toString("base64url");
    const cancelTimer = this.#after(ANSWER_MS, () => {
      this.#calls.delete(token);
      call.abort(new Error(`The client did not answer within ${ANSWER_MS / 60_000} minutes.`));
    });
    this.#calls.set(token, { call, caller, cancelTimer });
    return inputRequired({ inputRequests: requests, requestState: token });
  }

  [Symbol.dispose](): void {
    for (const { call, cancelTimer } of this.#calls.values()) {
      cancelTimer();
      call.abort(new Error("The server is stopping."));
    }
    this.#calls.clear();
  }
}

interface Question {
  readonly form: ApprovalQuestion;
  readonly settle: (approval: Approval) => void;
  wasSent: boolean;
}

class PausedCall {
  readonly result: Promise<CallToolResult>;
  readonly #abort = new AbortController();
  readonly #questions = new Map<string, Question>();
  #asked = Promise.withResolvers<void>();
  #progress: ProgressReporter;
  #roundsLeft: number;

  constructor(run: (call: PausableCall) => Promise<CallToolResult>, { progress }: CallRound, rounds: number) {
    this.#progress = progress;
    this.#roundsLeft = rounds;
    const { signal } = this.#abort;
    const forwarded: ProgressReporter = { report: (message) => this.#progress.report(message) };
    this.result = run({ signal, progress: forwarded, approve: (tool, args) => this.#ask(toApprovalQuestion(tool, args)) });
    this.result.catch(() => {}); // a call that ends while it is paused has no listener
  }

  /** Waits until the call has ended (null) or has questions for the client. The client can cancel the call meanwhile. */
  async next({ signal, progress }: CallRound): Promise<InputRequests | null> {
    this.#progress = progress;
    const cancel = (): void => this.abort(signal.reason);
    signal.addEventListener("abort", cancel, { once: true });
    if (signal.aborted) cancel();
    try {
      const hasEnded = await Promise.race([this.result.then(() => true), this.#asked.promise.then(() => false)]);
      if (hasEnded) return null;
      await nextIteration(); // calls that a script makes at the same time ask in the same round
      return this.#send();
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  }

  answer(answers: Readonly<Record<string, unknown>>): void {
    for (const [id, question] of this.#questions) {
      if (!question.wasSent) continue;
      this.#questions.delete(id);
      question.settle(readApproval(Object.hasOwn(answers, id) ? answers[id] : undefined));
    }
  }

  abort(reason: unknown): void {
    this.#abort.abort(reason);
  }

  #ask(form: ApprovalQuestion): Promise<Approval> {
    if (this.#roundsLeft === 0) return Promise.resolve(askedTooOften);
    const { promise, resolve } = Promise.withResolvers<Approval>();
    this.#questions.set(randomBytes(9).toString("base64url"), { form, settle: resolve, wasSent: false });
    this.#asked.resolve();
    return promise;
  }

  #send(): InputRequests {
    this.#asked = Promise.withResolvers();
    this.#roundsLeft -= 1;
    for (const question of this.#questions.values()) question.wasSent = true;
    return Object.fromEntries([...this.#questions].map(([id, { form }]) => [id, toInputRequest(form)]));
  }
}

const askedTooOften: Approval = {
  approved: false,
  because: `a call can ask ${MAX_ROUNDS} times for approval, and no more than ${MAX_PAUSED_PER_TENANT} calls can wait for it.`,
  wasNotAsked: true,
};
