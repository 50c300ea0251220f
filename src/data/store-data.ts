import { createToolError } from "../errors/tool-error.ts";
import { parseArguments } from "../errors/parse-arguments.ts";
import type { EvidenceItem, EvidenceStore } from "../evidence/evidence-store.ts";
import { nameGivenAlias } from "../evidence/name-alias.ts";
import { toJsonText } from "../evidence/to-json-text.ts";
import { readCsv } from "../text/read-csv.ts";
import type { DataAnswer } from "./conversation-data.ts";
import { storeDataCallSchema } from "./data-call-schemas.ts";
import { failed, refusal, refuse } from "./data-errors.ts";

const TOOL = "store_data";
const example = { name: "sales", csv: "day,amount\n2024-01-01,12.5\n2024-01-02,14\n" };

/** Keeps inline data under the very name that was asked for, or says why not. */
export async function storeData(input: unknown, { evidence }: { evidence: EvidenceStore }): Promise<DataAnswer> {
  const parsed = parseArguments(storeDataCallSchema, input, refusal(TOOL, example));
  if (!parsed.ok) return parsed;
  const { name, data, csv } = parsed.data;
  const refused = refuseName(name, evidence);
  if (refused !== null) return refused;
  try {
    return csv === undefined ? await keepJson(name, data, evidence) : await keepCsv(name, csv, evidence);
  } catch (error) {
    return failed(TOOL, error);
  }
}

function refuseName(name: string, evidence: EvidenceStore): DataAnswer | null {
  const isTaken = (alias: string): boolean => evidence.get(alias) !== null;
  const isUsable = nameGivenAlias(name, () => false) === name;
  if (isUsable && !isTaken(name)) return null;
  const code = isUsable ? "DATA_NAME_TAKEN" : "DATA_NAME_INVALID";
  const summary = isUsable
    ? `There is data named ${name} already, and it stays as it is. Nothing was stored.`
    : `${JSON.stringify(name)} cannot be the name of data: it takes a Python name that is no keyword, builtin, helper or preloaded name. Nothing was stored.`;
  const issue = isUsable ? "is taken" : "is no Python name that is free to use";
  const details = [{ path: "name", issue, received_type: "string" }];
  return refuse(createToolError({ code, tool: TOOL, summary, details, hints: [`The name ${nameGivenAlias(name, isTaken)} is free.`] }));
}

async function keepCsv(name: string, csv: string, evidence: EvidenceStore): Promise<DataAnswer> {
  const problem = findCsvProblem(csv);
  if (problem !== null) {
    const details = [{ path: "csv", issue: problem, received_type: "string" }];
    const summary = `Nothing was stored: ${problem}.`;
    return refuse(createToolError({ code: "DATA_INVALID", tool: TOOL, summary, details, examples: [example] }));
  }
  return describeStored(await evidence.keepData({ name, format: "csv", bytes: Buffer.from(csv) }), []);
}

/** Python refuses rows with more cells than there are names; who gave them can mend them now. */
function findCsvProblem(csv: string): string | null {
  const { columns, count, cells } = readCsv(csv);
  if (columns.every((name) => name.trim() === "")) return "it has no header line";
  for (let index = 0; index < count; index += 1) {
    const { length } = cells(index);
    if (length > columns.length)
      return `row ${index + 1} after the header has ${length} cells, the header has ${columns.length}: quote cells that have commas in them`;
  }
  return null;
}

async function keepJson(name: string, data: unknown, evidence: EvidenceStore): Promise<DataAnswer> {
  const notes: string[] = [];
  const value = typeof data === "string" ? unwrapText(data, notes) : data;
  const { text, precisionLoss } = toJsonText(value);
  if (precisionLoss !== undefined && precisionLoss.integersPast2To53 > 0)
    notes.push(
      `${precisionLoss.integersPast2To53} integer(s) past 2^53 may have been rounded on their way here: give them as text, or as csv.`,
    );
  return describeStored(await evidence.keepData({ name, format: "json", bytes: Buffer.from(text) }), notes);
}

/** JSON that was sent as text. */
function unwrapText(text: string, notes: string[]): unknown {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null) return text;
    notes.push("data was JSON as text; the value it says was stored.");
    return value;
  } catch {
    return text;
  }
}

const SHOWN_COLUMNS = 60;

function describeStored({ alias, format, bytes, shape }: EvidenceItem, notes: readonly string[]): DataAnswer {
  const columns = shape.columns.slice(0, SHOWN_COLUMNS);
  const more = shape.columnCount > columns.length ? [`${shape.columnCount - columns.length} more columns are not named here.`] : [];
  const said = [`Python has it as ${alias}: name it in inputAliases.`, ...notes, ...more];
  return { ok: true, json: JSON.stringify({ alias, format, bytes, rows: shape.rows, columns, notes: said }) };
}
