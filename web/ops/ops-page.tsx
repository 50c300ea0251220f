import "./ops.css";
import { useMemo } from "react";
import type { Operations } from "../../src/protocol/http-operations.ts";
import { ApiError } from "../page/api/api-error.ts";
import { formatBytes, formatCount, formatWhen } from "../page/format.ts";
import { FailureNotice } from "../page/conversation/failure-notice.tsx";
import { ThemeChoice } from "../page/shell/theme-choice.tsx";
import { ChartView } from "../charts/chart-view.tsx";
import { texts } from "../texts.ts";
import { Latencies } from "./latencies.tsx";
import { SelfTest } from "./self-test.tsx";
import { toCounts, toTimelines } from "./to-charts.ts";
import { useOperations } from "./use-operations.ts";

/** The operator's page: sandboxes, starts, durations, failures, probes. */
export default function OpsPage({ go }: { go(path: string): void }) {
  const { history, error } = useOperations();
  const now = history.at(-1);
  const timelines = useMemo(() => toTimelines(history), [history]);
  const isRefused = error instanceof ApiError && error.status === 403;
  return (
    <main className="ops">
      <header>
        <h1>{texts.ops.title}</h1>
        <span role="status" className="soft">
          {error !== null && now
            ? texts.ops.paused
            : now
              ? texts.ops.updated(new Date(now.at).toLocaleTimeString("en-GB"))
              : texts.conversation.loading}
        </span>
        <ThemeChoice />
        <a
          href="/"
          onClick={(event) => {
            event.preventDefault();
            go("/");
          }}
        >
          {texts.ops.back}
        </a>
      </header>
      {isRefused && <p className="notice notice-major">{texts.ops.refused}</p>}
      {error !== null && !now && !isRefused && <FailureNotice error={error} />}
      {now && (
        <>
          <Tiles now={now} />
          <div className="ops-grid">
            {[...timelines, ...toCounts(now)].map(({ title, spec, data }) => (
              <section key={title} className="card">
                <ChartView spec={spec} data={data} title={title} height={180} />
              </section>
            ))}
            {now.failures.length === 0 && (
              <section className="card">
                <h2>{texts.ops.failures}</h2>
                <p className="soft">{texts.ops.noFailures}</p>
              </section>
            )}
            <Latencies latencies={now.latencies} />
            <SelfTest known={now.selfTest} />
            <section className="card ops-wide">
              <h2>
                {texts.ops.probes} <span className="soft">{now.probes.length}</span>
              </h2>
              {now.probes.length === 0 && <p className="soft">{texts.ops.noProbes}</p>}
              <div className="output" role="log" aria-label={texts.ops.probes} aria-live="off" tabIndex={0}>
                <pre>
                  {now.probes
                    .toReversed()
                    .map(({ at, line }) => `${at.slice(11, 23)}  ${line}\n`)
                    .join("")}
                </pre>
              </div>
            </section>
          </div>
        </>
      )}
    </main>
  );
}

/** The most important numbers. */
function Tiles({ now }: { now: Operations }) {
  return (
    <dl className="tiles">
      <Tile
        label={texts.ops.sandboxes}
        value={`${now.sandboxes.alive} / ${now.sandboxes.places}`}
        more={`${texts.ops.alive.toLowerCase()}, ${now.sandboxes.waiting} ${texts.ops.waiting.toLowerCase()}`}
      />
      <Tile label={texts.ops.warm} value={`${now.pool.warm} / ${now.pool.size}`} />
      <Tile
        label={texts.ops.turns}
        value={formatCount(now.turns.total)}
        more={`${now.turns.running} ${texts.ops.running}, ${now.turns.queued} ${texts.ops.queued}`}
      />
      <Tile label={texts.ops.cellCount} value={formatCount(now.cells.total)} />
      <Tile
        label={texts.ops.artifacts}
        value={formatCount(now.artifacts.reduce((sum, { count }) => sum + count, 0))}
        more={formatBytes(now.artifacts.reduce((sum, { bytes }) => sum + bytes, 0))}
      />
      <Tile label={texts.ops.since} value={formatWhen(now.startedAt)} more={`${now.driver ?? texts.shell.noDriver}, ${now.version}`} />
    </dl>
  );
}

function Tile({ label, value, more }: { label: string; value: string; more?: string }) {
  return (
    <div className="tile">
      <dt>{label}</dt>
      <dd>
        {value} {more !== undefined && <span className="soft">{more}</span>}
      </dd>
    </div>
  );
}
