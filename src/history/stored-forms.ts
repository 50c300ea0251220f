import { z } from "zod";
import { type CellRun, cellRunSchema } from "../protocol/http-cells.ts";
import { turnStatuses } from "../protocol/http-turns.ts";
import { type TurnEvent, turnEventSchema } from "../protocol/turn-events.ts";
import { type Gap, stopReasons, type RecordedResult, turnResultSchema } from "../protocol/turn-result.ts";

/** A longer text is not read: it would hold up everyone, and half a gigabyte is more than a string can hold. */
export const MAX_TEXT_BYTES: number = 64 * 1024 * 1024;
/** The same for all events of a turn. */
export const MAX_EVENTS_BYTES: number = 4 * MAX_TEXT_BYTES;

// What readers of a row rely on. Further fields may be there, and artifacts may be of any version that has an address.
const artifact = z.looseObject({ kind: z.string(), contentHash: z.string(), url: z.string() });
const result = z.looseObject({ ...turnResultSchema.shape, artifacts: z.array(artifact) });
const eventForms = new Map<string, z.ZodType>(
  turnEventSchema.options.map(({ shape }) => {
    const type = shape.type.value;
    if (type === "artifact") return [type, z.looseObject({ ...shape, artifact })];
    return [type, z.looseObject(type === "turn-end" ? { ...shape, result } : shape)];
  }),
);
const event = z.looseObject({ type: z.string() }).refine((value) => eventForms.get(value.type)?.safeParse(value).success === true);

interface StoredValues {
  readonly event: TurnEvent;
  readonly result: RecordedResult;
  readonly cellRun: CellRun;
}

/** The forms of rows that contain JSON. */
const storedForms = { event, result, cellRun: z.looseObject({ ...cellRunSchema.shape, artifacts: z.array(artifact) }) } as const;

const status = z.enum(turnStatuses);
const stopReason = z.enum(stopReasons).nullable();

export function isTurnState(row: { readonly status: unknown; readonly stopReason: unknown }): boolean {
  return status.safeParse(row.status).success && stopReason.safeParse(row.stopReason).success;
}

/** A row that cannot be read. `message` says why. */
export class UnreadableRow extends Error {}

/** Parses the text of a row. Throws UnreadableRow. */
export function parseRow<Form extends keyof StoredValues>(form: Form, text: unknown): StoredValues[Form] {
  if (typeof text !== "string") throw new UnreadableRow(`has more than ${MAX_TEXT_BYTES} bytes`);
  const value = parse(text);
  if (!storedForms[form].safeParse(value).success) throw new UnreadableRow(`does not have the form of ${formNames[form]}`);
  return value as StoredValues[Form];
}

const formNames = { event: "an event", result: "a result", cellRun: "a cell's run" } as const;

/** Selects a text, or null if it is too long to be read. */
export function bounded(column: string): string {
  return `CASE WHEN octet_length(${column}) <= ${MAX_TEXT_BYTES} THEN ${column} END`;
}

/** The result as JSON. One that is too large to be read again is written without artifacts and trace; the events of the turn still have them. */
export function writeResult(result: RecordedResult): string {
  const write = (): string | null => {
    try {
      const text = JSON.stringify(result);
      return Buffer.byteLength(text) <= MAX_TEXT_BYTES ? text : null;
    } catch (error) {
      if (error instanceof RangeError) return null; // longer than a string can be
      throw error;
    }
  };
  return write() ?? writeReduced(result);
}

function writeReduced(result: RecordedResult): string {
  const gap: Gap = { code: "result_too_large", severity: "major", detail: tooLarge };
  const answer = result.answer.slice(0, MAX_ANSWER_CHARACTERS);
  return JSON.stringify({ ...result, answer, artifacts: [], trace: [], gaps: [...result.gaps, gap] });
}

const tooLarge = `The result has more than ${MAX_TEXT_BYTES} bytes. It is stored without its artifacts and trace; the events of the turn have them.`;

const MAX_ANSWER_CHARACTERS = 1_000_000;

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UnreadableRow("is not valid JSON");
  }
}
