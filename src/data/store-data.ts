import { createEnvelope } from "../errors/envelope.ts";
import type { EvidenceStore } from "../evidence/contract.ts";
import { splitCsv } from "../evidence/dataset/split-csv.ts";
import { nameGivenAlias } from "../evidence/name-alias.ts";
import { toJsonText } from "../evidence/to-json-text.ts";
import type { DataAnswer } from "./contract.ts";
import { storeDataCallSchema, type StoreDataCall } from "./data-call-schemas.ts";
import { failed, malformed, refuse } from "./data-envelopes.ts";

const TOOL = "store_data";
const example = { name: "sales", csv: "day,amount\n2024-01-01,12.5\n2024-01-02,14\n" };

/** Keeps inline data under the very name that was asked for, or says why not. */
export async function storeData(input: unknown, { evidence }: { evidence: EvidenceStore }): Promise<DataAnswer> {
  const parsed = storeDataCallSchema.safeParse(input);
  if (!parsed.success) return malformed({ tool: TOOL, schema: storeDataCallSchema, input, issues: parsed.error.issues, example });
  const call = parsed.data;
  return refuseName(call.name, evidence) ?? (await keep(call, evidence));
}

function refuseName(name: string, evidence: EvidenceStore): DataAnswer | null {
  const isTaken = (alias: string): boolean => evidence.get(alias) !== null;
  const usable = nameGivenAlias(name, () => false);
  if (usable !== name) {
    const summary = `${JSON.stringify(name)} cannot be the name of data: it takes a Python name that is no keyword, builtin, helper or preloaded name. Nothing was stored.`;
    return nameRefused("DATA_NAME_INVALID", summary, nameGivenAlias(name, isTaken));
  }
  if (!isTaken(name)) return null;
  const summary = `There is data named ${name} already, and it stays as it is. Nothing was stored.`;
  return nameRefused("DATA_NAME_TAKEN", summary, nameGivenAlias(name, isTaken));
}

function nameRefused(code: "DATA_NAME_INVALID" | "DATA_NAME_TAKEN", summary: string, free: string): DataAnswer {
  const details = [
    { path: "name", issue: code === "DATA_NAME_TAKEN" ? "is taken" : "is no Python name that is free to use", received_type: "string" },
  ];
  return refuse(createEnvelope({ code, tool: TOOL, summary, details, hints: [`The name ${free} is free.`] }));
}

async function keep(call: StoreDataCall, evidence: EvidenceStore): Promise<DataAnswer> {
  try {
    return call.csv === undefined ? await keepJson(call, evidence) : await keepCsv(call.name, call.csv, evidence);
  } catch (error) {
    return failed(TOOL, error);
  }
}

async function keepCsv(name: string, csv: string, evidence: EvidenceStore): Promise<DataAnswer> {
  const problem = findCsvProblem(csv);
  if (problem !== null) return invalid("csv", problem);
  const item = await evidence.keepData({ name, format: "csv", bytes: Buffer.from(csv) });
  return stored(evidence, item.alias, []);
}

/** Python refuses rows with more cells than there are names; who gave them can mend them now. */
function findCsvProblem(csv: string): string | null {
  const [header, ...rows] = splitCsv(csv, ",");
  if (header === undefined || header.every((name) => name.trim() === "")) return "it has no header line";
  const at = rows.findIndex((row) => row.length > header.length);
  if (at < 0) return null;
  return `row ${at + 1} after the header has ${rows[at]!.length} cells, the header has ${header.length}: quote cells that have commas in them`;
}

async function keepJson({ name, data }: StoreDataCall, evidence: EvidenceStore): Promise<DataAnswer> {
  const notes: string[] = [];
  const value = typeof data === "string" ? unwrapText(data, notes) : data;
  const { text, precisionLoss } = toJsonText(value);
  if (precisionLoss !== undefined && precisionLoss.integersPast2To53 > 0)
    notes.push(
      `${precisionLoss.integersPast2To53} integer(s) past 2^53 may have been rounded on their way here: give them as text, or as csv.`,
    );
  const item = await evidence.keepData({ name, format: "json", bytes: Buffer.from(text) });
  return stored(evidence, item.alias, notes);
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

function invalid(path: string, problem: string): DataAnswer {
  const details = [{ path, issue: problem, received_type: "string" }];
  return refuse(
    createEnvelope({ code: "DATA_INVALID", tool: TOOL, summary: `Nothing was stored: ${problem}.`, details, examples: [example] }),
  );
}

const SHOWN_COLUMNS = 60;

function stored(evidence: EvidenceStore, alias: string, notes: readonly string[]): DataAnswer {
  const { bytes, format, shape } = evidence.get(alias)!;
  const columns = shape.columns.slice(0, SHOWN_COLUMNS);
  const more = shape.columnCount > columns.length ? [`${shape.columnCount - columns.length} more columns are not named here.`] : [];
  const answer = {
    alias,
    format,
    bytes,
    rows: shape.rows,
    columns,
    notes: [`Python has it as ${alias}: name it in inputAliases.`, ...notes, ...more],
  };
  return { ok: true, json: JSON.stringify(answer) };
}
