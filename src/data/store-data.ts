import { z } from "zod";
import { parseArguments } from "../errors/parse-arguments.ts";
import { createToolError } from "../errors/tool-error.ts";
import { nameGivenAlias } from "../evidence/name-alias.ts";
import { createEvidenceStore } from "../evidence/create-evidence-store.ts";
import type { EvidenceItem, EvidenceShape, EvidenceStore, NamedData } from "../evidence/evidence-store.ts";
import { toJsonText } from "../evidence/to-json-text.ts";
import { dataNotes, dataParameters } from "../prompts/data-tools.ts";
import { readerOptionsSchema } from "../protocol/reader.ts";
import type { DataAnswer, DataCallOptions } from "./conversation-data.ts";
import { invalidArguments, refuse, refuseFailure, refuseTable } from "./data-errors.ts";
import type { TableSchemas } from "./tables/create-table-schemas.ts";

export const storeDataCallSchema = z
  .strictObject({
    name: z.string().min(1).max(48).describe(dataParameters.storeName),
    data: z.unknown().optional().describe(dataParameters.storeData),
    csv: z.string().optional().describe(dataParameters.storeCsv),
    reader: readerOptionsSchema.omit({ encoding: true }).optional().describe(dataParameters.storeReader),
  })
  .superRefine(({ data, csv, reader }, context) => {
    if ((data === undefined) === (csv === undefined))
      context.addIssue({
        code: "custom",
        path: [],
        message: data === undefined ? "needs data or csv" : "has both data and csv; give one of them",
      });
    if (reader !== undefined && csv === undefined) context.addIssue({ code: "custom", path: ["reader"], message: "is only for csv" });
  });

const TOOL = "store_data";
const example = { name: "sales", csv: "day,amount\n2024-01-01,12.5\n2024-01-02,14\n" };

export interface StoreDataOptions extends DataCallOptions {
  readonly evidence: EvidenceStore;
  readonly schemas: TableSchemas;
}

/** Stores inline data under exactly the requested name, or refuses with the reason. */
export async function storeData(input: unknown, { evidence, schemas, signal }: StoreDataOptions): Promise<DataAnswer> {
  const parsed = parseArguments(storeDataCallSchema, input, invalidArguments(TOOL, example));
  if (!parsed.ok) return parsed;
  const { name, data, csv, reader } = parsed.data;
  const refused = refuseName(name, evidence);
  if (refused !== null) return refused;
  try {
    if (csv === undefined) return await storeJson(name, data, evidence);
    return await storeCsv({ name, format: "csv", bytes: Buffer.from(csv), reader }, { evidence, schemas, signal });
  } catch (error) {
    return refuseFailure(TOOL, error, signal);
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

/** Reads the CSV in a sandbox before it is stored, so that the caller can still fix it. */
async function storeCsv(data: NamedData, { evidence, schemas, signal }: StoreDataOptions): Promise<DataAnswer> {
  const trial = createEvidenceStore({ tenant: evidence.tenant }).addData(data);
  const [reply] = await schemas.describe([trial], { signal });
  if (!reply!.ok) {
    if (reply!.refusal.code !== "DATA_UNREADABLE") return refuseTable(TOOL, reply!.refusal);
    const details = [{ path: "csv", issue: reply!.refusal.why, received_type: "string" }];
    const summary = `Nothing was stored. ${reply!.refusal.why}`;
    return refuse(createToolError({ code: "DATA_INVALID", tool: TOOL, summary, details, examples: [example] }));
  }
  const { rows, columns, columnCount, notes } = reply!.schema;
  const item = await evidence.keepData(data);
  const names = columns.map(({ name }) => name);
  return describeStored(item, { rows, columns: names, columnCount }, notes);
}

async function storeJson(name: string, data: unknown, evidence: EvidenceStore): Promise<DataAnswer> {
  const parsed = typeof data === "string" ? parseJsonString(data) : null;
  const { text, precisionLoss } = toJsonText(parsed === null ? data : parsed);
  const rounded = precisionLoss?.integersPast2To53 ?? 0;
  const notes = [...(parsed === null ? [] : [dataNotes.parsedJsonText]), ...(rounded > 0 ? [dataNotes.roundedIntegers(rounded)] : [])];
  const item = await evidence.keepData({ name, format: "json", bytes: Buffer.from(text) });
  return describeStored(item, item.shape, notes);
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

function describeStored(
  { alias, format, bytes }: EvidenceItem,
  shape: Pick<EvidenceShape, "rows" | "columns" | "columnCount">,
  notes: readonly string[],
): DataAnswer {
  const columns = shape.columns.slice(0, MAX_SHOWN_COLUMNS);
  const hidden = shape.columnCount - columns.length;
  const allNotes = [dataNotes.storedAs(alias), ...notes, ...(hidden > 0 ? [dataNotes.moreColumns(hidden)] : [])];
  return { ok: true, json: JSON.stringify({ alias, _contextAlias: alias, format, bytes, rows: shape.rows, columns, notes: allNotes }) };
}
