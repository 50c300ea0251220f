import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { createArtifactChecker } from "../../src/artifacts/create-artifact-checker.ts";
import { runCell } from "../../src/cells/run-cell.ts";
import type { CellStatus } from "../../src/protocol/outcome.ts";
import type { Death, Lease } from "../../src/sandbox/contract.ts";
import { createFrameChannel } from "../../src/sandbox/frame-channel.ts";
import { defaultLimits } from "../../src/sandbox/limits.ts";
import type { AttackCase } from "../attack-case.ts";
import { forgingPrelude } from "../forging.ts";
import { generateFrames } from "../fuzz/frames.ts";
import { cell } from "../hostile-tenant.ts";

/** How a cell can end whose worker sends what it likes. Only the host itself says `timeout`. */
const possibleEnds: readonly string[] = [
  "ok",
  "python_error",
  "out_of_memory",
  "output_limit",
  "crashed",
  "contract_violation",
  "sandbox_lost",
] satisfies CellStatus[];

export const fuzzFrames: AttackCase = {
  name: "fuzz-frames",
  what: "mutated frames of a worker, many in this process and a few from real cells",
  async run({ hostile, seed, isShort }) {
    await using artifactChecker = createArtifactChecker();
    for (const bytes of generateFrames({ seed, count: isShort ? 300 : 5000 })) {
      const lease = createHostileLease(bytes);
      const request = { cell: 1, code: new Uint8Array(), rollback: "fork" as const, names: {}, expect: null, limits: defaultLimits };
      const end: string = await runCell({ ...request, lease, artifactChecker }).then(
        ({ status }) => status,
        (error: unknown) => String(error),
      );
      assert.ok(possibleEnds.includes(end), `the frames ${bytes.toString("base64").slice(0, 1000)} (base64) ended the cell with ${end}`);
    }
    for (const bytes of generateFrames({ seed: seed + 1, count: isShort ? 4 : 15 })) {
      const code = `${forgingPrelude}\nimport base64\nchannel.sendall(base64.b64decode("${bytes.toString("base64")}"))`;
      const { document } = await hostile.turn([cell(code.slice(0, 200_000)), cell("1 + 1")]);
      assert.equal(document.result?.outcome.stopReason, "complete_answer");
      assert.equal(document.cells.at(-1)?.status, "ok", "the next cell of the session failed");
    }
  },
};

/** A sandbox whose worker sends these bytes whatever it is asked, and then hangs up. */
function createHostileLease(bytes: Buffer): Lease {
  const usage = { peakMemoryBytes: 0, cpuMs: 0, memoryKills: 0 };
  const death = Promise.withResolvers<Death>();
  const readable = new PassThrough();
  readable.end(bytes);
  const writable = new PassThrough();
  writable.resume();
  const channel = createFrameChannel({ readable, writable });
  const close = async (): Promise<void> => {
    channel.close();
    death.resolve({ cause: "closed", detail: "closed" });
  };
  return {
    ...{ id: "lease", driver: "bubblewrap", start: "forked", channel },
    died: death.promise,
    usage: async () => usage,
    resetPeak: async () => usage,
    close,
    [Symbol.asyncDispose]: close,
  };
}
