import type { ReadChartRows } from "../interpreter/render-chart.ts";
import type { EvidenceItem, EvidenceStore, NamedFile } from "../evidence/evidence-store.ts";
import type { ConversationData, DataAnswer, DataCallOptions, DataFile, DataFiles } from "./conversation-data.ts";
import { stemOf, toPlainName } from "./data-formats.ts";
import { failed, refusedTable, unknownAlias } from "./data-errors.ts";
import { listData } from "./list-data.ts";
import { readData } from "./read-data.ts";
import { storeData } from "./store-data.ts";
import type { Tables } from "./tables/create-tables.ts";
import { pageFactsSchema } from "./tables/ask-table.ts";

export interface ConversationDataOptions {
  readonly evidence: EvidenceStore;
  /** Those of the process. */
  readonly tables: Tables;
  /** What `--data` gave. */
  readonly files?: DataFiles | undefined;
}

/** A chart's rows as JSON are below the limit of a result. */
const CHART_BYTES = 8 * 1024 * 1024;

/** Every given file is an alias of the conversation from now on. Nothing is read before it is used. */
export function createConversationData({ evidence, tables, files }: ConversationDataOptions): ConversationData {
  const taken = new Set<DataFile>();
  const told = new Map<string, string>();

  function takeFiles(): void {
    for (const file of files?.files() ?? []) {
      if (taken.has(file)) continue;
      taken.add(file);
      addFile({ name: toPlainName(file.stem), format: file.format, content: file.content });
    }
  }

  function addFile(file: NamedFile): EvidenceItem {
    const item = evidence.addFile(file);
    try {
      tables.schemas.known(item); // what another conversation has found in it is there for previews
    } catch {
      // it cannot be looked at now; who uses it is told
    }
    return item;
  }

  async function refresh(): Promise<void> {
    await files?.refresh();
    takeFiles();
  }

  /** Asked once for each answer: what it tells of counts as told. */
  function isChanged({ alias, file }: EvidenceItem): boolean {
    if (file === undefined) return false;
    const now = file.version();
    const before = told.get(alias);
    told.set(alias, now);
    return before !== undefined && before !== now;
  }

  async function schema(alias: string, { signal }: DataCallOptions = {}): Promise<DataAnswer> {
    const item = evidence.get(alias);
    if (item === null) return unknownAlias("read_data", alias, evidence.aliases());
    try {
      const [reply] = await tables.schemas.describe([item], { signal });
      if (!reply!.ok) return refusedTable("read_data", reply!.refusal);
      const facts = {
        alias,
        source: item.file?.kind ?? item.source,
        name: item.tool,
        format: item.format,
        bytes: item.bytes,
        version: reply!.version,
      };
      const changed = isChanged(item) ? { changed: true } : {};
      return { ok: true, json: `${JSON.stringify({ ...facts, ...changed }).slice(0, -1)},${reply!.json.slice(1)}` };
    } catch (error) {
      return failed("read_data", error, signal);
    }
  }

  const chartRows: ReadChartRows = async (item, { maxRows, signal }) => {
    try {
      const bounds = { maxBytes: CHART_BYTES, maxCellCharacters: 5000, records: true };
      const reply = await tables.ask(item, { ask: "page", offset: 0, limit: maxRows, ...bounds }, { signal });
      if (!reply.ok) return refusedTable("render_chart", reply.refusal);
      const { rows, total } = pageFactsSchema.parse(JSON.parse(reply.json));
      return { ok: true, rows: rows as Readonly<Record<string, unknown>>[], total };
    } catch (error) {
      return failed("render_chart", error, signal);
    }
  };

  takeFiles();
  return {
    evidence,
    refresh,
    storeData: (input) => storeData(input, { evidence }),
    async listData(input, { signal } = {}) {
      await refresh();
      return await listData(input, { evidence, schemas: tables.schemas, leftOut: files?.leftOut() ?? [], isChanged, signal });
    },
    readData: (input, { signal } = {}) => readData(input, { evidence, tables, reader: "model", isChanged, signal }),
    page: (input, { signal } = {}) => readData(input, { evidence, tables, reader: "program", isChanged, signal }),
    schema,
    chartRows,
    addUpload: ({ fileName, format, content }) => addFile({ name: toPlainName(stemOf(fileName)), format, content }),
  };
}
