import { expect } from "vitest";
import type { Runtime } from "../../src/create-runtime.ts";
import type { CellOutcome } from "../../src/protocol/outcome.ts";
import type { SandboxLimits } from "../../src/sandbox/contract.ts";
import { withLimits } from "../../src/sandbox/limits.ts";
import { attemptCode } from "./attempt-code.ts";
import type { HostTraps } from "./host-traps.ts";

/** A cell session that is attacked from inside. A variable that was set before must survive the attack. */
export interface AttackedCellSession extends AsyncDisposable {
  /** Runs a cell. Its outcome must not contain the host's secret, and must report a replaced sandbox. */
  run(code: string): Promise<CellOutcome>;
  /** Runs a cell that records attempts (see attempt-code.ts). The system must have refused each of them, and none may be missing. */
  expectAllRefused(code: string, names: readonly string[]): Promise<Record<string, string>>;
  /** Expects the same sandbox with the variable that was set before. */
  expectIntact(): Promise<void>;
  /** Expects that the next cell works, with the variable that was set before, unless the outcome reported it as lost. */
  expectTruthful(): Promise<void>;
}

const SMALL: Partial<SandboxLimits> = { memoryBytes: 512 * 1024 * 1024, cellTimeoutMs: 20_000 };

export async function openAttackedCellSession(
  runtime: Runtime,
  traps: HostTraps,
  limits: Partial<SandboxLimits> = {},
): Promise<AttackedCellSession> {
  const cellSession = await runtime.openCellSession({ limits: withLimits({ ...SMALL, ...limits }) });
  let sandbox: string | null = null;
  let expected = "[4,2]";

  async function run(code: string): Promise<CellOutcome> {
    const outcome = await cellSession.run({ code });
    expect(JSON.stringify(outcome)).not.toContain(traps.secret);
    expect("sandboxReplaced" in outcome.diagnostics).toBe(sandbox !== null && sandbox !== outcome.sandbox.id);
    sandbox = outcome.sandbox.id;
    if ((outcome.diagnostics.sandboxReplaced as { variables: string } | undefined)?.variables === "lost") expected = '"gone"';
    return outcome;
  }

  async function expectAllRefused(code: string, names: readonly string[]): Promise<Record<string, string>> {
    const outcome = await run(`${attemptCode}\n${code}\nset_result(attempts)`);
    expect(outcome.error).toBeUndefined();
    const attempts = JSON.parse(outcome.resultJson ?? "null") as Record<string, string>;
    expect(Object.entries(attempts).filter(([, how]) => !how.startsWith("refused"))).toEqual([]);
    expect(Object.keys(attempts)).toEqual(names);
    return attempts;
  }

  async function expectIntact(): Promise<void> {
    const outcome = await run("kept");
    expect(outcome.error).toBeUndefined();
    expect(outcome.resultJson).toBe("[4,2]");
    expect(outcome.diagnostics).not.toHaveProperty("sandboxReplaced");
  }

  async function expectTruthful(): Promise<void> {
    const code = "globals().get('kept', 'gone')";
    let outcome = await run(code);
    if (outcome.status === "sandbox_lost") outcome = await run(code);
    expect(outcome.error).toBeUndefined();
    expect(outcome.resultJson).toBe(expected);
    if (expected === '"gone"') {
      expect((await run("kept = [4, 2]")).error).toBeUndefined();
      expected = "[4,2]";
    }
  }

  const first = await run("kept = [4, 2]");
  expect(first.status).toBe("ok");
  return { run, expectAllRefused, expectIntact, expectTruthful, [Symbol.asyncDispose]: () => cellSession.close() };
}
