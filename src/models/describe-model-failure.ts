import { APICallError, JSONParseError, type LanguageModel, RetryError, TypeValidationError } from "ai";
import type { ModelFailure } from "../protocol/turn-result.ts";
import { ellipsize } from "../text/clip-text.ts";
import { isRecord } from "../text/json.ts";
import { nameModel } from "./name-model.ts";

/**
 * Says in one sentence why a call of the model failed, with one cause and one action. Contains no class names, no keys and no stack. The provider's own words
 * appear only where the cause is in the request; errors about keys often repeat them.
 */
export function describeModelFailure(thrown: unknown, model: LanguageModel): ModelFailure {
  const error = RetryError.isInstance(thrown) ? thrown.lastError : thrown;
  const name = nameModel(model);
  const status = statusOf(error);
  if (status !== null && status >= 400) return describeStatus(status, { error, name });
  const broken = describeConnection({ error, name });
  if (broken !== null) return broken;
  if (!isUnreadable(error) && status === null) return describeOther({ error, name });
  return toUnreadable(name);
}

/** The model sent nothing until the time of the turn was over. */
export function describeSilence(model: LanguageModel, wallMs: number): ModelFailure {
  const message = `${nameModel(model)} did not answer within the time limit of the turn (${wallMs / 1000} s).`;
  return failure("MODEL_UNAVAILABLE", message, "Ask again, or raise budgets.wallMs in sluice.config.json for a slow model.");
}

/** Why a finished reply is incomplete; null when it is complete. `isEmpty`: it has neither text nor calls, as when a page of HTML is read as a stream. */
export function describeFinish(
  { finishReason, isEmpty }: { finishReason: string; isEmpty: boolean },
  model: LanguageModel,
): ModelFailure | null {
  const name = nameModel(model);
  if (isEmpty && ["other", "error", "interrupted"].includes(finishReason)) return toUnreadable(name);
  if (finishReason === "interrupted") return toBreak(name);
  if (finishReason === "length")
    return failure(
      "MODEL_REPLY_INCOMPLETE",
      `The reply of ${name} was cut off at its output limit.`,
      "Ask a narrower question, or choose a model with a higher limit.",
    );
  if (finishReason !== "content-filter") return null;
  return failure("MODEL_REPLY_INCOMPLETE", `The content filter of the provider stopped the reply of ${name}.`, "Ask in other words.");
}

export function describeBreak(model: LanguageModel): ModelFailure {
  return toBreak(nameModel(model));
}

/** Both sentences, for gaps and answers. */
export function toSentences({ message, hint }: ModelFailure): string {
  return `${message} ${hint}`;
}

/** Whether the next call would fail, too: the SDK has already repeated what may be repeated. */
export function isLasting({ code }: ModelFailure): boolean {
  return ["MODEL_ACCESS_DENIED", "MODEL_NOT_FOUND", "MODEL_RATE_LIMITED", "MODEL_UNAVAILABLE"].includes(code);
}

function toUnreadable(name: string): ModelFailure {
  const hint = `Check that the address${settingOf(name, "baseUrl")} is an API of this kind.`;
  return failure("MODEL_REPLY_INVALID", `${name} sent a reply that cannot be read.`, hint);
}

function toBreak(name: string): ModelFailure {
  return failure("MODEL_REPLY_INCOMPLETE", `The connection to ${name} broke before its reply was complete.`, "Ask again.");
}

interface Failed {
  readonly error: unknown;
  /** Of the model. */
  readonly name: string;
}

function failure(code: ModelFailure["code"], message: string, hint: string): ModelFailure {
  return { code, message, hint };
}

function describeStatus(status: number, { error, name }: Failed): ModelFailure {
  const http = `(HTTP ${status})`;
  switch (status) {
    case 401:
      return failure("MODEL_ACCESS_DENIED", `${name} did not accept the API key ${http}.`, `Check the key${settingOf(name, "apiKey")}.`);
    case 403:
      return failure(
        "MODEL_ACCESS_DENIED",
        `${name} may not be used with this API key ${http}.`,
        "Choose another model, or allow this one in the account of the provider.",
      );
    case 404:
      return failure(
        "MODEL_NOT_FOUND",
        `${name} does not exist at its provider ${http}.`,
        `Check the name of the model and the address${settingOf(name, "baseUrl")}.`,
      );
    case 429:
      return failure(
        "MODEL_RATE_LIMITED",
        `${name} accepts no more requests for now ${http}.`,
        `Ask again ${retryTime(error) ?? "in a minute"}; if it repeats, check the quota of the account.`,
      );
    case 408:
    case 504:
      return failure("MODEL_UNAVAILABLE", `${name} did not answer in time ${http}.`, "Ask again in a minute.");
    case 503:
    case 529:
      return failure("MODEL_UNAVAILABLE", `${name} is overloaded ${http}.`, `Ask again ${retryTime(error) ?? "in a minute"}.`);
    default:
      if (status >= 500) return failure("MODEL_UNAVAILABLE", `${name} failed at its provider ${http}.`, "Ask again in a minute.");
      return failure(
        "MODEL_REQUEST_REFUSED",
        `${name} refused the request ${http}: ${wordsOf(error)}`,
        "Choose a model with tools and streaming, or ask a shorter question.",
      );
  }
}

/** The variable and the configuration key of a setting; empty for a provider that is not configured here. */
function settingOf(name: string, key: "apiKey" | "baseUrl"): string {
  const variables: Readonly<Record<string, string>> = {
    anthropic: "ANTHROPIC",
    openai: "OPENAI",
    "openai-compatible": "OPENAI_COMPATIBLE",
    gateway: "AI_GATEWAY",
  };
  const [provider = ""] = name.split(":", 1);
  const variable = variables[provider];
  if (variable === undefined) return "";
  return ` (${variable}_${key === "apiKey" ? "API_KEY" : "BASE_URL"}, or models.${provider}.${key} in sluice.config.json)`;
}

/** `in 20 s`, from the header Retry-After in seconds or as a date. */
function retryTime(error: unknown): string | null {
  const header = APICallError.isInstance(error) ? error.responseHeaders?.["retry-after"] : undefined;
  if (header === undefined) return null;
  const seconds = /^\d+$/.test(header) ? Number(header) : Math.ceil((Date.parse(header) - Date.now()) / 1000);
  if (!(seconds > 0)) return null;
  return seconds < 120 ? `in ${seconds} s` : `in ${Math.ceil(seconds / 60)} minutes`;
}

const unreachable: ReadonlyMap<string, string> = new Map([
  ["ECONNREFUSED", "nothing listens there"],
  ["ENOTFOUND", "the host is unknown"],
  ["EAI_AGAIN", "the host is unknown"],
  ["ECONNRESET", "the connection broke"],
  ["EPIPE", "the connection broke"],
  ["UND_ERR_SOCKET", "the connection broke"],
  ["ETIMEDOUT", "it did not answer in time"],
  ["EHOSTUNREACH", "there is no route to it"],
  ["ENETUNREACH", "there is no network"],
  ["UND_ERR_CONNECT_TIMEOUT", "it did not answer in time"],
  ["UND_ERR_HEADERS_TIMEOUT", "it did not answer in time"],
  ["UND_ERR_BODY_TIMEOUT", "it did not answer in time"],
]);

/** Null when the error is not one of the connection. */
function describeConnection({ error, name }: Failed): ModelFailure | null {
  const chain = causesOf(error);
  const reason = chain.flatMap(({ code }) => (typeof code === "string" ? (unreachable.get(code) ?? []) : [])).at(0);
  const isCut = chain.some(({ message }) => message === "terminated" || message === "aborted");
  if (isCut) return toBreak(name);
  if (reason === undefined && !(APICallError.isInstance(error) && error.statusCode === undefined)) return null;
  const host = APICallError.isInstance(error) ? URL.parse(error.url)?.host : undefined;
  const place = host === undefined || host === "" ? "" : ` at ${host}`;
  const hint = `Check that the server runs and that its address is right${settingOf(name, "baseUrl")}.`;
  return failure("MODEL_UNAVAILABLE", `${name} cannot be reached${place}: ${reason ?? "the connection failed"}.`, hint);
}

/** Errors without a status: of a stream, or of a model that is no provider's. */
function describeOther({ error, name }: Failed): ModelFailure {
  const type = isRecord(error) ? JSON.stringify([error["type"], error["code"]]) : "";
  if (/overloaded/.test(type)) return describeStatus(529, { error, name });
  if (/rate_limit|insufficient_quota/.test(type)) return describeStatus(429, { error, name });
  return failure("MODEL_FAILED", `${name} failed: ${wordsOf(error)}`, "Ask again; if it repeats, choose another model.");
}

function causesOf(error: unknown): { readonly code?: unknown; readonly message?: unknown }[] {
  const chain: { code?: unknown; message?: unknown; cause?: unknown }[] = [];
  for (let one = error; typeof one === "object" && one !== null && chain.length < 6; one = (one as { cause?: unknown }).cause)
    chain.push(one);
  return chain;
}

function statusOf(error: unknown): number | null {
  return typeof error === "object" && error !== null && "statusCode" in error && typeof error.statusCode === "number"
    ? error.statusCode
    : null;
}

function isUnreadable(error: unknown): boolean {
  return (
    JSONParseError.isInstance(error) ||
    TypeValidationError.isInstance(error) ||
    (error instanceof Error && /^AI_(?:InvalidResponseData|EmptyResponseBody|NoContentGenerated|NoOutputGenerated)Error$/.test(error.name))
  );
}

const WORDS_CHARACTERS = 200;

/** What the error says, as a sentence: its first line without names of classes and without keys. */
function wordsOf(error: unknown): string {
  const message =
    typeof error === "object" && error !== null && "message" in error ? String(error.message) : typeof error === "string" ? error : "";
  const words = message
    .split("\n", 1)[0]!
    .replaceAll(/\b(?:AI_)?[A-Z]\w*Error\b:?\s*/g, "")
    .replaceAll(/\b(?:sk|pk|rk|gsk|xai|api|key|Bearer)[-_ ][\w*.-]{6,}/g, "…")
    .trim();
  const line = ellipsize(words === "" ? "no reason given" : words, WORDS_CHARACTERS);
  return /[.!?…]$/.test(line) ? line : `${line}.`;
}
