import { serializeEnvelope, type Envelope } from "../errors/envelope.ts";
import type { ForeignEnvelope } from "../errors/foreign-envelope.ts";
import type { ArtifactEnvelope } from "../protocol/artifact.ts";
import type { JsonSchema, ToolAnnotations } from "./contract.ts";

/** A tool of our own, defined once for every way in: the model of a turn, an AI SDK program, an MCP client. `Context` is what it works on. */
export interface Tool<Context, Result extends ToolCallResult = ToolCallResult> {
  readonly name: string;
  readonly title?: string | undefined;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly annotations: ToolAnnotations;
  /** Checks its input itself: a call that breaks the schema gets a result with an error. Rejects with `signal.reason` only. */
  run(input: unknown, context: Context): Promise<Result>;
}

export interface ToolCallResult {
  /** `refused`: nothing was run. */
  readonly status: "ok" | "error" | "refused";
  /** What a model reads: the JSON text of an object, with the error in it when the call failed. Numbers past 2^53 are exact in it. */
  readonly text: string;
  readonly error: Envelope | ForeignEnvelope | null;
  /** What was kept as evidence, the main part first. */
  readonly aliases?: readonly string[];
  /** Those of the aliases that `text` does not show whole. */
  readonly cutAliases?: readonly string[];
  readonly artifacts?: readonly ArtifactEnvelope[];
}

/** The result of a call that did not do what it was asked for. */
export function toErrorResult(error: Envelope | ForeignEnvelope, status: "error" | "refused" = "refused"): ToolCallResult {
  return { status, text: `{"status":"${status}","error":${serializeEnvelope(error)}}`, error };
}
