import { randomUUID } from "node:crypto";
import type { Limiter } from "../../../concurrency/create-limiter.ts";
import type { Configured } from "../../../config/open-configured.ts";
import type { History, IdempotencyKey, StoredEvent } from "../../../history/history.ts";
import { toAbandonedResult } from "../../../history/recover-turns.ts";
import { refuseWhatDemoCannotAnswer } from "../../../models/demo.ts";
import type { TurnEvent } from "../../../protocol/turn-events.ts";
import { toRecordedResult, type RecordedResult } from "../../../protocol/turn-result.ts";
import { ellipsize } from "../../../text/clip-text.ts";
import { type Conversation, createConversation } from "../../../turn/create-conversation.ts";
import { runTurn } from "../../../turn/run-turn.ts";
import { serverStopping } from "../client-limits.ts";
import type { Conversations, LiveConversation } from "../conversations.ts";
import type { Log } from "../create-log.ts";
import type { TenantStores } from "../create-tenant-stores.ts";
import { HttpFailure } from "../http-failure.ts";
import { LiveTurn } from "./live-turn.ts";

type Model = Awaited<ReturnType<Configured["openModel"]>>;

export interface TurnStart {
  readonly tenant: string;
  /** Whom the bearer token of the request stands for. */
  readonly subject: string | null;
  readonly conversationId: string;
  readonly question: string;
  readonly timeZone?: string | undefined;
  /** Turns that this one replaces. */
  readonly supersedes?: readonly string[] | undefined;
  readonly idempotency?: IdempotencyKey | undefined;
  /** Whether to stop the turn when no client listens to it. */
  readonly isAttended: boolean;
  /** Of the request. Aborting it cancels a turn that is still queued, but not one that has begun. */
  readonly signal: AbortSignal;
}

export interface TurnsOptions {
  readonly configured: Configured;
  readonly model: () => Promise<Model>;
  readonly history: History;
  readonly conversations: Conversations;
  readonly storesOf: (tenant: string) => TenantStores;
  readonly turnLimiter: Limiter;
  readonly unattendedMs: number;
  readonly log: Log;
  readonly onEvent: (event: TurnEvent) => void;
}

/** Starts the turns of all conversations and makes sure that each one ends with a stored result. */
export class Turns {
  readonly #options: TurnsOptions;
  readonly #live = new Map<string, LiveTurn>();
  #isDraining = false;

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the turn has begun. Rejects with 409 if no model can answer or the conversation already has a turn, 429 if too many are running, 503 if
   * the server is stopping.
   */
  async start(request: TurnStart): Promise<LiveTurn> {
    if (this.#isDraining) throw serverStopping();
    const { conversations, turnLimiter } = this.#options;
    const model = await this.#options.model();
    const { tenant, conversationId } = request;
    const begun = Promise.withResolvers<LiveTurn>();
    void conversations
      .use({ tenant, id: conversationId }, async (conversation) => {
        if (conversation.turn !== null) throw alreadyRunning(conversation.turn === "starting" ? null : conversation.turn.turnId);
        refuseWhatDemoCannotAnswer({ model, question: request.question, evidence: conversation.evidence });
        conversation.turn = "starting";
        try {
          const signal = AbortSignal.any([request.signal, conversation.removalSignal]);
          await turnLimiter.run(() => this.#run(request, { conversation, model, onBegin: begun.resolve }), signal, tenant);
        } finally {
          conversation.turn = null;
        }
      })
      .catch(begun.reject);
    return await begun.promise;
  }

  /** A turn that is running, or that has ended but could not be stored yet. */
  find(tenant: string, turnId: string): LiveTurn | null {
    const found = this.#live.get(keyOf(tenant, turnId));
    if (found !== undefined) this.#storeEnd(found);
    return this.#live.get(keyOf(tenant, turnId)) ?? null;
  }

  findRunning(tenant: string, conversationId: string): LiveTurn | null {
    for (const turn of this.#live.values())
      if (turn.tenant === tenant && turn.conversationId === conversationId && turn.result === null) return turn;
    return null;
  }

  /** Refuses new turns, stops those that are still running after `ms`, and resolves when all have ended. */
  async drain(ms: number): Promise<void> {
    this.#isDraining = true;
    const all = Promise.all([...this.#live.values()].map(({ ended }) => ended));
    const timer = setTimeout(() => {
      for (const turn of this.#live.values()) turn.stop("the server is stopping");
    }, ms);
    await all;
    clearTimeout(timer);
    for (const turn of this.#live.values()) this.#storeEnd(turn);
  }

  /** Runs a turn to its end. The result is stored before any client sees that the turn has ended. */
  async #run(
    request: TurnStart,
    { conversation, model, onBegin }: { conversation: LiveConversation; model: Model; onBegin: (turn: LiveTurn) => void },
  ): Promise<void> {
    const { conversations, log } = this.#options;
    await conversations.changeSubject(conversation, request.subject);
    if (this.#isDraining) throw serverStopping();
    conversation.storage.check("A turn", 0);
    const turn = this.#begin(request);
    const { tenant, turnId, conversationId } = turn;
    const stop = (): void => turn.stop("the conversation was removed");
    conversation.removalSignal.addEventListener("abort", stop);
    if (conversation.removalSignal.aborted) stop();
    conversation.turn = turn;
    onBegin(turn);
    log.info("turn_started", { turn: turnId, conversation: conversationId, tenant });
    const result = await answerQuestion(this.#options, request, { turn, conversation, model });
    await conversations.saveEvidence(conversation, turnId);
    conversation.removalSignal.removeEventListener("abort", stop);
    conversation.turn = null;
    turn.push({ type: "turn-end", result });
    this.#storeEnd(turn);
    turn.end();
    const { outcome, usage } = result;
    log.info("turn_ended", { turn: turnId, tenant, stopReason: outcome.stopReason, ms: usage.wallMs, steps: usage.steps });
  }

  #begin({ tenant, subject, conversationId, question, supersedes, idempotency, isAttended }: TurnStart): LiveTurn {
    const { history, unattendedMs } = this.#options;
    const turnId = randomUUID();
    const at = new Date().toISOString();
    history.conversations.ensure({ tenant, id: conversationId, title: toTitle(question), at, subject });
    history.turns.begin({ tenant, turnId, conversationId, question, at, supersedes, idempotency });
    const turn = new LiveTurn({
      tenant,
      turnId,
      conversationId,
      unattendedMs: isAttended ? unattendedMs : null,
      store: (stored) => this.#storeEvent({ tenant, turnId }, stored),
    });
    this.#live.set(keyOf(tenant, turnId), turn);
    return turn;
  }

  #storeEvent({ tenant, turnId }: { tenant: string; turnId: string }, stored: StoredEvent): void {
    const { history, log, onEvent } = this.#options;
    onEvent(stored.event);
    if (stored.event.type === "turn-end") return; // #storeEnd writes it, in one transaction with the result
    try {
      history.events.append({ tenant, turnId }, stored);
    } catch (error) {
      log.error("event_not_kept", { turn: turnId, type: stored.event.type, reason: (error as Error).message });
    }
  }

  /** Stores the result and all missing events, then forgets the turn. If that fails (disk full), the turn stays in memory and `find` tries again. */
  #storeEnd({ tenant, turnId, result, events }: LiveTurn): void {
    if (result === null) return;
    const { history, log } = this.#options;
    try {
      const { at } = events.at(-1)!;
      history.inTransaction(() => {
        const written = new Set(history.events.read({ tenant, turnId }).map(({ seq }) => seq));
        for (const stored of events) if (!written.has(stored.seq)) history.events.append({ tenant, turnId }, stored);
        history.turns.end({ tenant, turnId, result, at });
      });
      this.#live.delete(keyOf(tenant, turnId));
    } catch (error) {
      log.error("end_not_kept", { turn: turnId, reason: (error as Error).message });
    }
  }
}

function keyOf(tenant: string, turnId: string): string {
  return JSON.stringify([tenant, turnId]);
}

/** Runs the turn. An unexpected error becomes a result with the gap `turn_failed`. */
async function answerQuestion(
  { configured, history, storesOf, log }: TurnsOptions,
  { tenant, subject, question, timeZone }: TurnStart,
  { turn, conversation, model }: { turn: LiveTurn; conversation: LiveConversation; model: Model },
): Promise<RecordedResult> {
  const { turnId, conversationId } = turn;
  const stores = storesOf(tenant);
  const onEvent = (event: TurnEvent): void => {
    if (event.type !== "turn-end") turn.push(event);
  };
  try {
    const result = await runTurn(configured.runtime, {
      ...configured.openConversation({
        conversation: toConversation(history, conversation),
        tenant,
        subject,
        artifacts: stores.artifactsFor(turnId, conversation.storage),
        datasets: stores.datasetsFor(turnId),
      }),
      question,
      timeZone,
      model,
      turnId,
      approve: turn.approvals.approve,
      onEvent,
      signal: turn.signal,
    });
    return toRecordedResult(result);
  } catch (error) {
    log.error("turn_failed", { turn: turnId, reason: (error as Error).message });
    const detail = "The turn failed because of an internal error. See the server log.";
    return toAbandonedResult(turn.events, { turnId, conversationId, code: "turn_failed", detail });
  }
}

/** The conversation with the questions and answers that the model may read: of turns for the same subject, not superseded, with a result. */
function toConversation(history: History, { tenant, id, evidence, data }: LiveConversation): Conversation {
  const exchanges = history.turns
    .listOfSubject(tenant, id)
    .flatMap(({ turnId, question, result }) => (result === null ? [] : [{ turnId, question, answer: result.answer }]));
  return createConversation({ id, tenant, evidence, exchanges, readChartRows: data.chartRows });
}

const TITLE_CHARACTERS = 80;

function toTitle(question: string): string {
  return ellipsize(question.replaceAll(/\s+/g, " ").trim(), TITLE_CHARACTERS);
}

function alreadyRunning(turnId: string | null): HttpFailure {
  return new HttpFailure({
    code: "TURN_RUNNING",
    message: "The conversation already has a running turn. Its turns run one at a time.",
    hint: "Wait for the turn to end, or stop it.",
    details: turnId === null ? {} : { turnId },
  });
}
