import { percentile } from "../bench/serve-load.ts";
import { readinessSchema } from "../src/protocol/http-operations.ts";
import type { AttackCase } from "./attack-case.ts";
import { openAttackedServer, type AttackedServer } from "./attacked-server.ts";
import { createHostileTenant } from "./hostile-tenant.ts";
import { watchServer, type Started } from "./left-behind.ts";
import { neighbourScript, openNeighbour, type Neighbour, type NeighbourReport } from "./neighbour-thread.ts";

/** What one attack did to the server and to the neighbour. */
export interface AttackRow {
  readonly name: string;
  readonly what: string;
  readonly seconds: number;
  /** Turns that the neighbour finished meanwhile. */
  readonly turns: number;
  readonly turnP95Ms: number;
  readonly readP95Ms: number;
  /** The longest block of the server's event loop. */
  readonly blockMs: number;
  /** Broken promises, as sentences. */
  readonly failures: readonly string[];
}

export interface AttackRun extends AsyncDisposable {
  /** The row of the time before the first attack. */
  readonly quiet: AttackRow;
  attack(attackCase: AttackCase): Promise<AttackRow>;
  /** Stops the server. Returns what it left behind, as sentences. */
  end(): Promise<string[]>;
}

export interface RunOptions {
  readonly driver: string;
  readonly seed: number;
  readonly isShort: boolean;
}

const SETTLE_MS = 60_000;

/** Starts the server and its neighbour, and measures how it is without an attack. */
export async function openAttackRun({ driver, seed, isShort }: RunOptions): Promise<AttackRun> {
  const cleanup = new AsyncDisposableStack();
  try {
    const server = cleanup.use(await openAttackedServer({ driver, isShort }));
    await server.model.setScript(neighbourScript.key, neighbourScript.replies);
    const { child, directory, url } = server.process;
    const started = watchServer({ pid: child.pid!, temporary: `${directory}/tmp` });
    const neighbour = cleanup.use(openNeighbour({ url, token: server.tokens.neighbour }));
    const hostile = createHostileTenant(server);
    const measure = (options: MeasureOptions): Promise<AttackRow> => measureWork({ server, neighbour, started }, options);
    await neighbour.report(); // the first turn starts everything
    const minTurns = isShort ? 3 : 30;
    const quiet = await measure({ name: "quiet", what: "nothing", minTurns, work: async () => {} });
    return {
      quiet,
      attack: ({ name, what, run }) => measure({ name, what, minTurns: 1, work: () => run({ hostile, server, seed, isShort }) }),
      async end() {
        await neighbour[Symbol.asyncDispose]();
        await started.look();
        const exitCode = await server.process.stop();
        const left = await started.leftBehind();
        return exitCode === 0 ? left : [`The server ended with the exit code ${exitCode}.`, ...left];
      },
      [Symbol.asyncDispose]: () => cleanup.disposeAsync(),
    };
  } catch (error) {
    await cleanup.disposeAsync();
    throw error;
  }
}

interface Watched {
  readonly server: AttackedServer;
  readonly neighbour: Neighbour;
  readonly started: Started;
}

interface MeasureOptions {
  readonly name: string;
  readonly what: string;
  readonly minTurns: number;
  readonly work: () => Promise<void>;
}

async function measureWork({ server, neighbour, started }: Watched, { name, what, minTurns, work }: MeasureOptions): Promise<AttackRow> {
  await readMetrics(server); // resets the longest block
  const errorsBefore = server.errors.length;
  const startedAt = performance.now();
  const broken = await work().then(
    () => [],
    (error: unknown) => [error instanceof Error ? error.message : String(error)],
  );
  const seconds = (performance.now() - startedAt) / 1000;
  await started.look();
  const report: NeighbourReport = await neighbour.report({ minTurns });
  const metrics = await readMetrics(server);
  const failures = [
    ...broken,
    ...report.failures.map((failure) => `The neighbour lost something: ${failure}`),
    ...(await checkServer(server)),
    ...server.errors.slice(errorsBefore).map((line) => `The server logged an error: ${line.slice(0, 500)}`),
  ];
  return {
    ...{ name, what, seconds, failures },
    turns: report.turnMs.length,
    turnP95Ms: percentile(report.turnMs, 0.95),
    readP95Ms: percentile(report.readMs, 0.95),
    blockMs: readMetric(metrics, "sluice_event_loop_block_seconds") * 1000,
  };
}

/** Whether the server is ready, and whether the places that the attack took are free again. */
async function checkServer(server: AttackedServer): Promise<string[]> {
  if (server.process.child.exitCode !== null || server.process.child.signalCode !== null) return ["The server has ended."];
  const response = await ask(server, "/readyz");
  const { checks } = readinessSchema.parse(await response.json());
  const notReady = checks.filter(({ ok }) => !ok).map((check) => `The server is not ready: ${check.name}: ${check.detail}`);
  return [...notReady, ...(await waitUntilFree(server))];
}

/** The neighbour has at most one turn and one sandbox, and the pool keeps one warm. */
async function waitUntilFree(server: AttackedServer): Promise<string[]> {
  const deadline = performance.now() + SETTLE_MS;
  for (;;) {
    const metrics = await readMetrics(server);
    const [turns, queued] = [readMetric(metrics, "sluice_turns_running"), readMetric(metrics, "sluice_turns_queued")];
    if (turns <= 1 && queued === 0) return [];
    if (performance.now() > deadline) return [`${turns} turns run and ${queued} wait ${SETTLE_MS / 1000} s after the attack.`];
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function readMetrics(server: AttackedServer): Promise<string> {
  const response = await ask(server, "/metrics");
  if (response.status !== 200) throw new Error(`The metrics cannot be read: ${response.status}`);
  return await response.text();
}

function ask({ process: { url }, tokens }: AttackedServer, path: string): Promise<Response> {
  return fetch(new URL(path, url), { headers: { authorization: `Bearer ${tokens.operator}` } });
}

function readMetric(metrics: string, name: string): number {
  return Number(new RegExp(`^${name} (.*)$`, "m").exec(metrics)?.[1]);
}
