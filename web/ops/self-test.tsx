import { useState } from "react";
import type { SelfTest as SelfTestResult } from "../../src/protocol/http-operations.ts";
import { server } from "../page/api/server.ts";
import { FailureNotice } from "../page/conversation/failure-notice.tsx";
import { formatWhen } from "../page/format.ts";
import { texts } from "../texts.ts";

/** Runs the self-test of each driver and shows the results. */
export function SelfTest({ known }: { known: SelfTestResult | null }) {
  const [own, setOwn] = useState<SelfTestResult | null>(null);
  const [isRunning, setIsRunning] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const run = async (): Promise<void> => {
    setIsRunning(true);
    setProblem(null);
    try {
      setOwn(await server.selfTest());
    } catch (error) {
      setProblem(error);
    } finally {
      setIsRunning(false);
    }
  };
  const shown = own ?? known;
  return (
    <section className="card">
      <h2>
        {texts.ops.selfTest} {shown && <span className="soft">{formatWhen(shown.at)}</span>}
      </h2>
      <button type="button" onClick={() => void run()} disabled={isRunning}>
        {isRunning ? texts.ops.testing : texts.ops.runSelfTest}
      </button>
      {problem !== null && <FailureNotice error={problem} />}
      {!shown && <p className="soft">{texts.ops.notTested}</p>}
      {shown?.drivers.map(({ name, usable, reason, checks }) => (
        <details key={name} open={usable}>
          <summary>
            <span className={`mark mark-${usable ? "ok" : "error"}`} aria-hidden /> <strong>{name}</strong>{" "}
            {usable ? texts.ops.usable : texts.ops.unusable} <span className="soft">{reason}</span>
          </summary>
          <ul className="checks">
            {checks.map((check) => (
              <li key={check.name}>
                <span
                  className={`mark mark-${check.passed ? "ok" : "error"}`}
                  role="img"
                  aria-label={check.passed ? texts.turn.status.ok : texts.turn.status.error}
                />{" "}
                {check.name} <span className="soft">{check.detail}</span>
              </li>
            ))}
          </ul>
        </details>
      ))}
    </section>
  );
}
