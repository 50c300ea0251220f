import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import type { ApprovalRequestEvent } from "../protocol/turn-events.ts";
import { createTerminalApproval } from "./terminal-approval.ts";

const request: ApprovalRequestEvent = {
  type: "approval-request",
  approvalId: "a1",
  callId: "c1",
  tool: "drop_table",
  server: "shop",
  arguments: { name: "orders\u001B[2J" },
};
const never = new AbortController().signal;

function terminal(isTTY = true): { input: PassThrough & { isTTY: boolean }; output: PassThrough & { isTTY: boolean } } {
  return { input: Object.assign(new PassThrough(), { isTTY }), output: Object.assign(new PassThrough(), { isTTY }) };
}

describe("approval at a terminal", () => {
  test.each([
    ["y", { approved: true }],
    [" YES ", { approved: true }],
    ["n", { approved: false, because: "the user said no." }],
    ["", { approved: false, because: "the user said no." }],
    ["yep", { approved: false, because: "the user said no." }],
  ])("understands the answer %o", async (typed, approval) => {
    const { input, output } = terminal();
    const asked = createTerminalApproval({ input, output })(request, never);
    input.write(`${typed}\n`);
    expect(await asked).toEqual(approval);
    expect(String(output.read())).toBe(
      '  ? shop · drop_table may change something. Arguments: {\n      "name": "orders\\u001b[2J"\n    }\n    Call it? [y/N] ',
    );
  });

  test("asks one question at a time", async () => {
    const { input, output } = terminal();
    const approve = createTerminalApproval({ input, output });
    const both = Promise.all([approve(request, never), approve({ ...request, tool: "drop_all" }, never)]);
    input.write("y\n");
    await new Promise((resolve) => setImmediate(resolve));
    input.write("n\n");
    expect((await both).map(({ approved }) => approved)).toEqual([true, false]);
  });

  test("rejects when its turn is aborted", async () => {
    const abort = new AbortController();
    const asked = createTerminalApproval(terminal())(request, abort.signal);
    abort.abort();
    await expect(asked).rejects.toThrow("aborted");
  });

  test("says how many characters of a long call are not shown", async () => {
    const { input, output } = terminal();
    const asked = createTerminalApproval({ input, output })({ ...request, arguments: { text: "x".repeat(3000) } }, never);
    input.write("n\n");
    await asked;
    expect(String(output.read())).toContain("… [1016 more characters]");
  });

  test("refuses without a terminal", async () => {
    const answer = { approved: false, because: "there is no terminal to ask for approval.", wasNotAsked: true };
    expect(await createTerminalApproval(terminal(false))(request, never)).toEqual(answer);
  });
});
