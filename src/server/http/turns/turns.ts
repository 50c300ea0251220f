import { randomUUID } from "node:crypto";
import type { Configured } from "../../../config/open-configured.ts";
import type { History } from "../../../history/history.ts";
import { toAbandonedResult } from "../../../history/recover-turns.ts";
import type { TurnEvent } from "../../../protocol/turn-events.ts";
import type { TurnResult } from "../../../protocol/turn-result.ts";
import { type Conversation, createConversation } from "../../../turn/create-conversation.ts";
import { runTurn } from "../../../turn/run-turn.ts";
import { removeRemoteImages } from "../../../turn/answer/remove-remote-images.ts";
import { ellipsize } from "../../../text/clip-text.ts";
import type { Conversations, LiveConversation } from "../conversations.ts";
import type { Limiter } from "../../../concurrency/create-limiter.ts";
import { serverStopping } from "../guard.ts";
import { HttpFailure } from "../http-failure.ts";
import type { Log } from "../create-log.ts";
import type { TenantStores } from "../create-tenant-stores.ts";
import { createLiveTurn, type LiveTurn, type TurnFeed } from "./create-live-turn.ts";

type Model = Awaited<ReturnType<Configured["openModel"]>>;

export interface TurnStart {
  readonly tenant: string;
  readonly tokenHash: string | null;
  readonly conversationId: string;
  readonly question: string;
  /** Turns that this one is asked instead of. */
  readonly supersedes?: readonly string[] | undefined;
  readonly idempotency?: { readonly key: string; readonly requestHash: string } | undefined;
  /** Whether it is ended when nobody listens. */
  readonly isAttended: boolean;
  /** Of the request, while it waits in line. */
  readonly signal: AbortSignal;
}

export interface TurnsOptions {
  readonly configured: Configured;
  readonly model: () => Promise<Model>;
  readonly history: History;
  readonly conversations: Conversations;
  readonly storesOf: (tenant: string) => TenantStores;
  readonly gate: Limiter;
  readonly unattendedMs: number;
  readonly log: Log;
  readonly onEvent: (event: TurnEvent) => void;
}

/** The turns of all conversations: each is begun here, and ends here whatever happens. */
export class Turns {
  readonly #options: TurnsOptions;
  readonly #live = new Map<string, TurnFeed>();
  #isDraining = false;

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  /** Resolves when it has begun. Rejects with 409 when the conversation has one already, 429 when too many run, 503 when the server is stopping. */
  async start(turn: TurnStart): Promise<LiveTurn> {
    if (this.#isDraining) throw serverStopping();
    const { conversations, gate } = this.#options;
    const model = await this.#options.model();
    const { tenant, conversationId } = turn;
    const begun = Promise.withResolvers<LiveTurn>();
    void conversations
      .use({ tenant, id: conversationId }, async (conversation) => {
        if (conversation.turn !== null) throw alreadyRuns(typeof conversation.turn === "string" ? null : conversation.turn.turnId);
        conversation.turn = "starting";
        try {
          const wanted = AbortSignal.any([turn.signal, conversation.removed]);
          await gate.run(() => this.#run(turn, { conversation, model, onBegin: begun.resolve }), wanted, tenant);
        } finally {
          conversation.turn = null;
        }
      })
      .catch(begun.reject);
    return await begun.promise;
  }

  /** One that runs, or has ended and could not be written down yet. */
  find(tenant: string, turnId: string): LiveTurn | null {
    const found = this.#live.get(keyOf(tenant, turnId));
    if (found !== undefined) this.#settle(found);
    return this.#live.get(keyOf(tenant, turnId)) ?? null;
  }

  /** The one that runs. */
  findRunning(tenant: string, conversationId: string): LiveTurn | null {
    for (const turn of this.#live.values())
      if (turn.tenant === tenant && turn.conversationId === conversationId && turn.result === null) return turn;
    return null;
  }

  /** No new ones; those that run may go on for so long, and are then ended. */
  async drain(ms: number): Promise<void> {
    this.#isDraining = true;
    const all = Promise.all([...this.#live.values()].map(({ over }) => over));
    const timer = setTimeout(() => {
      for (const turn of this.#live.values()) turn.stop("the server is stopping");
    }, ms);
    await all;
    clearTimeout(timer);
    for (const turn of this.#live.values()) this.#settle(turn);
  }

  /** Until its very end: what it gave is written down before anybody hears that it is over. */
  async #run(
    turn: TurnStart,
    { conversation, model, onBegin }: { conversation: LiveConversation; model: Model; onBegin: (turn: LiveTurn) => void },
  ): Promise<void> {
    if (this.#isDraining) throw serverStopping();
    const { history, conversations, log } = this.#options;
    const { tenant, conversationId, question, supersedes, idempotency } = turn;
    const turnId = randomUUID();
    const at = new Date().toISOString();
    history.conversations.ensure({ tenant, id: conversationId, title: toTitle(question), at });
    history.turns.begin({ tenant, turnId, conversationId, question, at, supersedes, idempotency });
    const feed = this.#openFeed(turn, turnId);
    const stop = (): void => feed.stop("its conversation is removed");
    conversation.removed.addEventListener("abort", stop);
    if (conversation.removed.aborted) stop();
    conversation.turn = feed;
    onBegin(feed);
    log.info("turn_started", { turn: turnId, conversation: conversationId, tenant });
    const result = await answer(this.#options, turn, { feed, conversation, model });
    await conversations.save(conversation, turnId);
    conversation.removed.removeEventListener("abort", stop);
    conversation.turn = null;
    feed.push({ type: "turn-end", result });
    this.#settle(feed);
    feed.end();
    const { outcome, usage } = result;
    log.info("turn_ended", { turn: turnId, tenant, stopReason: outcome.stopReason, ms: usage.wallMs, steps: usage.steps });
  }

  /** An ended turn is found here until its end is written. One whose end cannot be (a full disk) is tried again whenever somebody looks for it. */
  #settle({ tenant, turnId, result, events }: LiveTurn): void {
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

  #openFeed({ tenant, conversationId, isAttended }: TurnStart, turnId: string): TurnFeed {
    const { history, log, unattendedMs, onEvent } = this.#options;
    const feed = createLiveTurn({
      tenant,
      turnId,
      conversationId,
      unattendedMs: isAttended ? unattendedMs : null,
      keep: (stored) => {
        onEvent(stored.event);
        if (stored.event.type === "turn-end") return; // with the end of the turn itself
        try {
          history.events.append({ tenant, turnId }, stored);
        } catch (error) {
          log.error("event_not_kept", { turn: turnId, type: stored.event.type, reason: (error as Error).message });
        }
      },
    });
    this.#live.set(keyOf(tenant, turnId), feed);
    return feed;
  }
}

function keyOf(tenant: string, turnId: string): string {
  return JSON.stringify([tenant, turnId]);
}

async function answer(
  { configured, history, storesOf, log }: TurnsOptions,
  { tenant, tokenHash, question }: TurnStart,
  { feed, conversation, model }: { feed: TurnFeed; conversation: LiveConversation; model: Model },
): Promise<TurnResult> {
  const { turnId, conversationId } = feed;
  const stores = storesOf(tenant);
  const artifacts = stores.artifactsFor(turnId);
  const own = new Set<string>();
  const clean = (text: string): string => showLinkAddresses(removeRemoteImages(text, own));
  const onEvent = (event: TurnEvent): void => {
    if (event.type === "artifact") own.add(event.artifact.url);
    if (event.type === "answer-delta") feed.push({ ...event, text: clean(event.text) });
    else if (event.type !== "turn-end") feed.push(event);
  };
  try {
    const result = await runTurn(configured.runtime, {
      ...configured.openConversation({
        conversation: toConversation(history, conversation),
        tenant,
        tokenHash,
        artifacts,
        datasets: stores.datasetsFor(turnId),
      }),
      question,
      model,
      turnId,
      approve: feed.approvals.approve,
      onEvent,
      signal: feed.signal,
    });
    return { ...result, answer: clean(result.answer) };
  } catch (error) {
    log.error("turn_failed", { turn: turnId, reason: (error as Error).message });
    const detail = "The turn could not be carried out: the server failed. Its log says how.";
    return toAbandonedResult(feed.events, { turnId, conversationId, code: "turn_failed", detail });
  }
}

/** With what was said in it so far: a turn that is asked again, or was removed, was not. */
function toConversation(history: History, { tenant, id, evidence, data }: LiveConversation): Conversation {
  const exchanges = history.turns
    .listByConversation(tenant, id)
    .flatMap(({ turnId, question, result }) => (result === null ? [] : [{ turnId, question, answer: result.answer }]));
  return createConversation({ id, tenant, evidence, exchanges, readChartRows: data.chartRows });
}

const TITLE_CHARACTERS = 80;

function toTitle(question: string): string {
  return ellipsize(question.replaceAll(/\s+/g, " ").trim(), TITLE_CHARACTERS);
}

function alreadyRuns(turnId: string | null): HttpFailure {
  return new HttpFailure({
    code: "TURN_RUNNING",
    message: "A turn of this conversation runs already, and they run one after the other.",
    hint: "Wait for it, or stop it.",
    ...(turnId === null ? {} : { details: { turnId } }),
  });
}

/**
 * A link in an answer can be made to look like another by what a tool said. So its address stands beside its words; links to this server's own files stay as
 * they are, and so do images, of which only our own are left.
 */
export function showLinkAddresses(text: string): string {
  return text
    .replaceAll(inlineLink, (whole, words: string, address: string) => {
      if (isOwn(address)) return whole;
      return words.trim() === address ? shown(address) : `${words} (${shown(address)})`;
    })
    .replaceAll(definition, (_whole, before: string, name: string, address: string) => `${before}${name}: ${shown(address)}`);
}

const inlineLink = /(?<!!)\[((?:[^[\]\\]|\\.)*)\]\(\s*<?((?:[^\s()<>]|\([^\s()<>]*\))+)>?(?:\s+(?:"[^"]*"|'[^']*'|\([^)]*\)))?\s*\)/g;
/** `[name]: address` renders as nothing, and makes a link of every `[name]`. */
const definition = /^( {0,3})\[([^\]]+)\]:\s*<?([^\s>]+)>?.*$/gm;

/** Only what leads to a page is a link still. */
function shown(address: string): string {
  return /^(?:https?:\/\/|mailto:)/i.test(address) ? `<${address}>` : `\`${address.replaceAll("`", "")}\``;
}

function isOwn(address: string): boolean {
  return /^\/(?:artifacts|data)\/[\w./-]+$/.test(address) || address.startsWith("#");
}
