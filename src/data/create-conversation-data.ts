import type { EvidenceItem, EvidenceStore, NamedFile } from "../evidence/evidence-store.ts";
import type { ReadChartRows } from "../interpreter/render-chart.ts";
import type { ConversationData, DataAnswer, DataFile, DataFiles } from "./conversation-data.ts";
import { refuseFailure, refuseTable, refuseUnknownAlias } from "./data-errors.ts";
import { stemOf, toPlainName } from "./data-formats.ts";
import { listData } from "./list-data.ts";
import { readDataPage, type ReadDataOptions } from "./read-data-page.ts";
import { storeData } from "./store-data.ts";
import type { Tables } from "./tables/create-tables.ts";
import { tablePageSchema } from "./tables/query-table.ts";

export interface ConversationDataOptions {
  readonly evidence: EvidenceStore;
  readonly tables: Tables;
  /** The files and folders given with `--data`. */
  readonly files?: DataFiles | undefined;
}

/** Creates the data of a conversation. Every given file becomes an alias at once; no file is read before it is used. */
export function createConversationData({ evidence, tables, files }: ConversationDataOptions): ConversationData {
  const added = new Set<DataFile>();
  const isChanged = createChangeDetector();

  function addFile(file: NamedFile): EvidenceItem {
    const item = evidence.addFile(file);
    try {
      tables.schemas.known(item); // lets the preview show the schema if another conversation has already computed it
    } catch {
      // The file cannot be read now. Each use of the alias reports that.
    }
    return item;
  }

  function addNewFiles(): void {
    for (const file of files?.files() ?? []) {
      if (added.has(file)) continue;
      added.add(file);
      const { stem, format, content, reader, readerExample } = file;
      addFile({ name: toPlainName(stem), format, content, reader, readerExample });
    }
  }

  async function refresh(): Promise<void> {
    await files?.refresh();
    addNewFiles();
  }

  addNewFiles();
  return {
    evidence,
    refresh,
    storeData: (input, { signal } = {}) => storeData(input, { evidence, schemas: tables.schemas, signal }),
    async listData(input, { signal } = {}) {
      await refresh();
      return await listData(input, { evidence, schemas: tables.schemas, leftOut: files?.leftOut() ?? [], isChanged, signal });
    },
    readData: (input, { signal } = {}) => readDataPage(input, { evidence, tables, reader: "model", isChanged, signal }),
    page: (input, { signal } = {}) => readDataPage(input, { evidence, tables, reader: "program", isChanged, signal }),
    schema: (alias, { signal } = {}) => describeTable(alias, { evidence, tables, isChanged, signal }),
    chartRows: createChartRowReader(tables),
    addUpload: ({ fileName, ...file }) => addFile({ ...file, name: toPlainName(stemOf(fileName)) }),
  };
}

/** Returns a function that says whether the file of an item changed since the function last saw it. Call it once per answer. */
function createChangeDetector(): (item: EvidenceItem) => boolean {
  const lastVersions = new Map<string, string>();
  return ({ alias, file }) => {
    if (file === undefined) return false;
    const version = file.version();
    const lastVersion = lastVersions.get(alias);
    lastVersions.set(alias, version);
    return lastVersion !== undefined && lastVersion !== version;
  };
}

async function describeTable(alias: string, { evidence, tables, isChanged, signal }: Omit<ReadDataOptions, "reader">): Promise<DataAnswer> {
  const item = evidence.get(alias);
  if (item === null) return refuseUnknownAlias("read_data", alias, evidence.aliases());
  try {
    const [reply] = await tables.schemas.describe([item], { signal });
    if (!reply!.ok) return refuseTable("read_data", reply!.refusal);
    const facts = {
      alias,
      source: item.file?.kind ?? item.source,
      name: item.tool,
      format: item.format,
      bytes: item.bytes,
      version: reply!.version,
      ...(isChanged(item) && { changed: true }),
    };
    // Join the texts instead of parsing the reply: it contains integers above 2^53 exactly.
    return { ok: true, json: `${JSON.stringify(facts).slice(0, -1)},${reply!.json.slice(1)}` };
  } catch (error) {
    return refuseFailure("read_data", error, signal);
  }
}

/** Keeps the rows of a chart, as JSON, below the size limit of a cell's result. */
const MAX_CHART_BYTES = 8 * 1024 * 1024;

function createChartRowReader(tables: Tables): ReadChartRows {
  return async (item, { maxRows, signal }) => {
    try {
      const bounds = { maxBytes: MAX_CHART_BYTES, maxCellCharacters: 5000, records: true };
      const reply = await tables.query(item, { ask: "page", offset: 0, limit: maxRows, ...bounds }, { signal });
      if (!reply.ok) return refuseTable("render_chart", reply.refusal);
      const { rows, total } = tablePageSchema.parse(JSON.parse(reply.json));
      return { ok: true, rows: rows as Readonly<Record<string, unknown>>[], total };
    } catch (error) {
      return refuseFailure("render_chart", error, signal);
    }
  };
}
