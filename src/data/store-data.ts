import { z } from "zod";
import { parseArguments } from "../errors/parse-arguments.ts";
import { createToolError } from "../errors/tool-error.ts";
import { nameGivenAlias } from "../evidence/name-alias.ts";
import type { EvidenceItem, EvidenceStore } from "../evidence/evidence-store.ts";
import { toJsonText } from "../evidence/to-json-text.ts";
import { dataNotes, dataParameters } from "../prompts/data-tools.ts";
import { readCsv } from "../text/read-csv.ts";
import type { DataAnswer } from "./conversation-data.ts";
import { invalidArguments, refuse, refuseFailure } from "./data-errors.ts";

export const storeDataCallSchema = z
  .strictObject({
    name: z.string().min(1).max(48).describe(dataParameters.storeName),
    data: z.unknown().optional().describe(dataParameters.storeData),
    csv: z.string().optional().describe(dataParameters.storeCsv),
  })
  .superRefine(({ data, csv }, context) => {
    if ((data === undefined) === (csv === undefined))
      context.addIssue({
        code: "custom",
        path: [],
        message: data === undefined ? "needs data or csv" : "has both data and csv; give one of them",
      });
  });

const TOOL = "store_data";
const example = { name: "sales", csv: "day,amount\n2024-01-01,12.5\n2024-01-02,14\n" };

/** Stores inline data under exactly the requested name, or refuses with the reason. */
export async function storeData(input: unknown, { evidence }: { evidence: EvidenceStore }): Promise<DataAnswer> {
  const parsed = parseArguments(storeDataCallSchema, input, invalidArguments(TOOL, example));
  if (!parsed.ok) return parsed;
  const { name, data, csv } = parsed.data;
  const refused = refuseName(name, evidence);
  if (refused !== null) return refused;
  try {
    return csv === undefined ? await storeJson(name, data, evidence) : await storeCsv(name, csv, evidence);
  } catch (error) {
    return refuseFailure(TOOL, error);
  }
}

function refuseName(name: string, evidence: EvidenceStore): DataAnswer | null {
  const isTaken = (alias: string): boolean => evidence.get(alias) !== null;
  const isUsable = nameGivenAlias(name, () => false) === name;
  if (isUsable && !isTaken(name)) return null;
  const code = isUsable ? "DATA_NAME_TAKEN" : "DATA_NAME_INVALID";
  const summary = isUsable
    ? `The name ${name} is already in use, and existing data is never overwritten. Nothing was stored.`
    : `${JSON.stringify(name)} cannot be used as a name. It must be a Python identifier that is not a keyword, builtin, helper or preloaded name. Nothing was stored.`;
  const issue = isUsable ? "is already in use" : "is not an available Python name";
  const details = [{ path: "name", issue, received_type: "string" }];
  return refuse(
    createToolError({ code, tool: TOOL, summary, details, hints: [`The name ${nameGivenAlias(name, isTaken)} is available.`] }),
  );
}

async function storeCsv(name: string, csv: string, evidence: EvidenceStore): Promise<DataAnswer> {
  const problem = findCsvProblem(csv);
  if (problem !== null) {
    const details = [{ path: "csv", issue: problem, received_type: "string" }];
    const summary = `Nothing was stored: ${problem}.`;
    return refuse(createToolError({ code: "DATA_INVALID", tool: TOOL, summary, details, examples: [example] }));
  }
  return describeStored(await evidence.keepData({ name, format: "csv", bytes: Buffer.from(csv) }), []);
}

/** Finds rows with more cells than the header. pandas would reject them later, when the caller can no longer fix them. */
function findCsvProblem(csv: string): string | null {
  const { columns, count, cells } = readCsv(csv);
  if (columns.every((name) => name.trim() === "")) return "the CSV has no header line";
  for (let index = 0; index < count; index += 1) {
    const { length } = cells(index);
    if (length > columns.length)
      return `row ${index + 1} after the header has ${length} cells, but the header has ${columns.length}; quote cells that contain commas`;
  }
  return null;
}

async function storeJson(name: string, data: unknown, evidence: EvidenceStore): Promise<DataAnswer> {
  const parsed = typeof data === "string" ? parseJsonString(data) : null;
  const { text, precisionLoss } = toJsonText(parsed === null ? data : parsed);
  const rounded = precisionLoss?.integersPast2To53 ?? 0;
  const notes = [...(parsed === null ? [] : [dataNotes.parsedJsonText]), ...(rounded > 0 ? [dataNotes.roundedIntegers(rounded)] : [])];
  return describeStored(await evidence.keepData({ name, format: "json", bytes: Buffer.from(text) }), notes);
}

/** Parses an array or object that a model sent as JSON text. Returns null for any other string. */
function parseJsonString(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}

const MAX_SHOWN_COLUMNS = 60;

function describeStored({ alias, format, bytes, shape }: EvidenceItem, notes: readonly string[]): DataAnswer {
  const columns = shape.columns.slice(0, MAX_SHOWN_COLUMNS);
  const hidden = shape.columnCount - columns.length;
  const allNotes = [dataNotes.storedAs(alias), ...notes, ...(hidden > 0 ? [dataNotes.moreColumns(hidden)] : [])];
  return { ok: true, json: JSON.stringify({ alias, format, bytes, rows: shape.rows, columns, notes: allNotes }) };
}
