import type { LanguageModelUsage } from "ai";
import type { Finding } from "../interpreter/findings.ts";
import type { ArtifactEnvelope } from "../protocol/artifact.ts";
import type { Coverage } from "../protocol/coverage-event.ts";
import type { Gap, TraceCall } from "../protocol/turn-result.ts";

/** A tool call of the model or of a script. */
export interface Call {
  readonly callId: string;
  readonly tool: string;
  /** Only for backend tools. */
  readonly server?: string | undefined;
  readonly intent?: string | undefined;
  readonly input: unknown;
  /** The `execute` call whose script requested this call; undefined when the model did. */
  readonly within?: string | undefined;
}

export interface RequestedCall extends Call {
  readonly step: number;
}

/** How a call ended. `refused`: it did not run. `ok` and `error`: it ran, and succeeded or failed. */
export interface CallEnd {
  readonly status: TraceCall["status"];
  /** Default: the time since the request. 0 for a call that did not run. */
  readonly durationMs?: number;
  /** Evidence that the call produced, the main item first. */
  readonly aliases?: readonly string[];
  readonly artifacts?: readonly ArtifactEnvelope[];
  readonly failure?: CallFailure | undefined;
  readonly isEmpty?: boolean;
  /** Flaws of what the call drew. */
  readonly findings?: readonly Finding[];
  /** Only for a call that ran Python. */
  readonly cell?: CellReport | undefined;
}

/** A call that has ended. */
export interface CallRecord extends RequestedCall, Pick<CallEnd, "status" | "failure"> {
  readonly durationMs: number;
  readonly aliases: readonly string[];
  readonly artifacts: readonly ArtifactEnvelope[];
  readonly isEmpty: boolean;
}

export interface CallFailure {
  /** The error kind; null for a failure without a tool error. */
  readonly kind: string | null;
  readonly code: string;
  readonly reason: string;
}

export interface CellReport {
  /** Whether the cell finished, so that its variables are part of the state. */
  readonly isOk: boolean;
  readonly code: string;
  readonly inputAliases: readonly string[];
  readonly reason: string;
  /** Entities that entered, left or paused, as the cell noted them. */
  readonly coverage?: Coverage | undefined;
  readonly sandboxMs: number;
}

/** A cell that finished. An edit replaces it with the edited cell. */
export interface CellRecord extends Omit<CellReport, "isOk" | "sandboxMs">, Drawing {
  readonly tool: string;
  readonly resultAlias: string | null;
}

/** A chart of `render_chart`. One with findings is replaced by the call that repairs it: a forced second render, or an edit of the cell whose result it shows. */
export interface ChartRecord extends Drawing {
  readonly alias: string;
  /** Whether `render_chart` was forced for it. */
  readonly isForced: boolean;
}

/** What a call drew. */
interface Drawing {
  readonly step: number;
  readonly artifacts: readonly ArtifactEnvelope[];
  readonly findings: readonly Finding[];
  /** The step of the call that replaced it; null while it is current. */
  readonly replacedIn: number | null;
}

export interface Tokens {
  input: number;
  output: number;
}

/** Adds the usage of a model call. Some providers report none. */
export function addUsage(tokens: Tokens, { inputTokens = 0, outputTokens = 0 }: Partial<LanguageModelUsage> = {}): void {
  tokens.input += inputTokens;
  tokens.output += outputTokens;
}

/** The record of a turn. The result, the answer and the dataset are built from it alone. */
export class Ledger {
  /** All calls that have ended, in the order of their ends. */
  readonly calls: CallRecord[] = [];
  /** All requested calls by id, in the order of the requests. */
  readonly requested = new Map<string, RequestedCall>();
  /** Includes replaced cells. */
  readonly cells: CellRecord[] = [];
  /** Includes replaced charts. */
  charts: readonly ChartRecord[] = [];
  /** The current artifacts, in the order of publication. */
  artifacts: readonly ArtifactEnvelope[] = [];
  /** Gaps that were found while the turn ran. */
  readonly gaps: Gap[] = [];
  /** Unavailable servers, as of the last step. */
  serverGaps: readonly Gap[] = [];
  readonly tokens: Tokens = { input: 0, output: 0 };
  steps = 0;
  /** The only tool that the model may call in the current step; null for a free choice. */
  forcedTool: string | null = null;
  sandboxMs = 0;
  finalResponse: string | null = null;
  /** The last text that the model wrote beside or instead of tool calls. */
  lastText = "";
  #canEditLastCell = false;

  /** The cell that an edit would replace; null when there is none, or when the last cell failed: then an edit changes the failed one. */
  get editableCell(): CellRecord | null {
    return this.#canEditLastCell ? this.cells.at(-1)! : null;
  }

  request(call: Call): RequestedCall {
    const requested = { ...call, step: this.steps };
    this.requested.set(call.callId, requested);
    return requested;
  }

  /** Call it once for each requested call. Returns the hashes of artifacts that the call replaced. */
  end(call: RequestedCall, end: CallEnd & { readonly durationMs: number }): string[] {
    const { cell, findings = [], status, durationMs, failure, aliases = [], artifacts = [], isEmpty = false } = end;
    const record = { ...call, status, durationMs, aliases, artifacts, failure, isEmpty };
    this.calls.push(record);
    const drawing = { step: call.step, artifacts, findings, replacedIn: null };
    const replaced = [
      ...(cell === undefined ? [] : this.#addCell(record, cell, drawing)),
      ...(call.tool === "render_chart" && status === "ok" ? this.#addChart(call, drawing) : []),
    ];
    this.artifacts = this.artifacts.filter(({ contentHash }) => !replaced.includes(contentHash));
    for (const artifact of artifacts)
      if (!this.artifacts.some(({ contentHash }) => contentHash === artifact.contentHash)) this.artifacts = [...this.artifacts, artifact];
    return replaced;
  }

  #addCell({ step, tool, aliases }: CallRecord, { isOk, sandboxMs, ...cell }: CellReport, drawing: Drawing): string[] {
    this.sandboxMs += sandboxMs;
    if (!isOk) {
      if (tool === "code_interpreter") this.#canEditLastCell = false; // the next edit changes the failed cell and replaces no earlier one
      return [];
    }
    const replaced = tool === "python_code_edit" ? this.editableCell : null;
    if (replaced !== null) this.cells[this.cells.length - 1] = { ...replaced, replacedIn: step };
    this.#canEditLastCell = true;
    this.cells.push({ ...cell, ...drawing, tool, resultAlias: aliases[0] ?? null });
    if (replaced === null) return [];
    const charts = this.flawedCharts.filter(({ alias }) => alias === replaced.resultAlias);
    this.#replaceCharts(charts, step);
    return listReplaced([replaced, ...charts], drawing);
  }

  /** A forced second render replaces the flawed chart with its title or alias, otherwise the first one. */
  #addChart({ input }: Call, drawing: Drawing): string[] {
    const alias = String((input as { alias?: unknown } | undefined)?.alias);
    const { flawedCharts: flawed } = this;
    const title = (one: Drawing): string | undefined => one.artifacts[0]?.title;
    const isRepair = this.forcedTool === "render_chart";
    const same = flawed.find((one) => title(one) === title(drawing)) ?? flawed.find((one) => one.alias === alias) ?? flawed[0];
    const replaced = isRepair && same !== undefined ? [same] : [];
    this.#replaceCharts(replaced, drawing.step);
    this.charts = [...this.charts, { ...drawing, alias, isForced: isRepair }];
    return listReplaced(replaced, drawing);
  }

  /** Current charts that the model must repair. */
  get flawedCharts(): readonly ChartRecord[] {
    return this.charts.filter(({ findings, replacedIn }) => findings.length > 0 && replacedIn === null);
  }

  #replaceCharts(replaced: readonly ChartRecord[], step: number): void {
    this.charts = this.charts.map((chart) => (replaced.includes(chart) ? { ...chart, replacedIn: step } : chart));
  }

  /** Remembers that `render_chart` is forced for these charts, which happens once. */
  forceRender(charts: readonly ChartRecord[]): void {
    this.charts = this.charts.map((chart) => (charts.includes(chart) ? { ...chart, isForced: true } : chart));
  }
}

/** The hashes of replaced artifacts, without those that were drawn again. */
function listReplaced(replaced: readonly Drawing[], { artifacts }: Drawing): string[] {
  const published = new Set(artifacts.map(({ contentHash }) => contentHash));
  return replaced.flatMap((one) => one.artifacts.map(({ contentHash }) => contentHash)).filter((hash) => !published.has(hash));
}
