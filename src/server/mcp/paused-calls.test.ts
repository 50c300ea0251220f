import { expect, test } from "vitest";
import type { CallToolResult, InputRequiredResult } from "@modelcontextprotocol/server";
import { orAbort } from "../../concurrency/or-abort.ts";
import { assignNames } from "../../tools/assign-names.ts";
import { sampleTool } from "../../tools/fixtures/sample-tools.ts";
import type { Approval } from "../../tools/tool-policy.ts";
import { PausedCalls, type PausableCall } from "./paused-calls.ts";

const tool = assignNames([sampleTool()]).tools[0]!;
const ann = { tenant: "ann", subject: "her token" };
const bob = { tenant: "bob", subject: "her token" };
const yes = { action: "accept", content: { approve: true } };
const round = (signal = new AbortController().signal) => ({ signal, progress: { report: () => {} } });

/** Asks this many times, one after the other, and returns the answers as text. */
const asking =
  (times: number) =>
  async ({ approve }: PausableCall): Promise<CallToolResult> => {
    const answers: unknown[] = [];
    for (let at = 0; at < times; at += 1) answers.push(((await approve(tool, { at })) as Approval).approved);
    return { content: [{ type: "text", text: JSON.stringify(answers) }] };
  };

const questionsOf = (result: CallToolResult | InputRequiredResult | null): { token: string; ids: string[] } => {
  const { requestState, inputRequests } = result as InputRequiredResult;
  return { token: requestState!, ids: Object.keys(inputRequests!) };
};
const answersOf = (result: CallToolResult | InputRequiredResult | null): unknown => {
  const [first] = (result as CallToolResult).content;
  return first?.type === "text" ? (JSON.parse(first.text) as unknown) : null;
};

test("a token continues its call once, and only for its own tenant and subject", async () => {
  using paused = new PausedCalls();
  const { token, ids } = questionsOf(await paused.start(asking(1), round(), ann));
  const answers = { [ids[0]!]: yes };
  expect(await paused.resume(token, answers, round(), bob)).toBeNull();
  expect(await paused.resume(token, answers, round(), { ...ann, subject: "another token" })).toBeNull();
  expect(await paused.resume(`${token}x`, answers, round(), ann)).toBeNull();
  expect(answersOf(await paused.resume(token, answers, round(), ann))).toEqual([true]);
  expect(await paused.resume(token, answers, round(), ann)).toBeNull();
});

test("only an answer to the question itself approves", async () => {
  using paused = new PausedCalls();
  const wrong = [
    {},
    { other: yes },
    { ID: { action: "accept" } },
    { ID: { action: "accept", content: { approve: "true" } } },
    { ID: null },
  ];
  for (const answers of wrong) {
    const { token, ids } = questionsOf(await paused.start(asking(1), round(), ann));
    const named = Object.fromEntries(Object.entries(answers).map(([id, answer]) => [id === "ID" ? ids[0]! : id, answer]));
    expect(answersOf(await paused.resume(token, named, round(), ann))).toEqual([false]);
  }
});

test("a call asks in at most eight rounds; questions that come together share one", async () => {
  using paused = new PausedCalls();
  let result: CallToolResult | InputRequiredResult | null = await paused.start(asking(10), round(), ann);
  for (let rounds = 0; rounds < 8; rounds += 1) {
    const { token, ids } = questionsOf(result);
    result = await paused.resume(token, { [ids[0]!]: yes }, round(), ann);
  }
  expect(answersOf(result)).toEqual([...Array.from({ length: 8 }, () => true), false, false]);
  const together = async ({ approve }: PausableCall): Promise<CallToolResult> => {
    await Promise.all([approve(tool, { at: 1 }), approve(tool, { at: 2 })]);
    return { content: [] };
  };
  expect(questionsOf(await paused.start(together, round(), ann)).ids).toHaveLength(2);
});

test("a call is aborted when its client cancels the round, does not answer in time, or the server stops", async () => {
  const timers: (() => void)[] = [];
  const paused = new PausedCalls({ after: (_ms, work) => (timers.push(work), () => {}) });
  const reasons: unknown[] = [];
  const waiting = async ({ signal, approve }: PausableCall): Promise<CallToolResult> => {
    signal.addEventListener("abort", () => reasons.push(signal.reason));
    await approve(tool, {});
    return await orAbort(new Promise(() => {}), signal);
  };
  const { token, ids } = questionsOf(await paused.start(waiting, round(), ann));
  const cancel = new AbortController();
  const resumed = paused.resume(token, { [ids[0]!]: yes }, round(cancel.signal), ann);
  cancel.abort(new Error("cancelled"));
  await expect(resumed).rejects.toThrow("cancelled");
  const late = questionsOf(await paused.start(waiting, round(), ann));
  timers.at(-1)!();
  expect(await paused.resume(late.token, {}, round(), ann)).toBeNull();
  await paused.start(waiting, round(), ann);
  paused[Symbol.dispose]();
  expect(reasons.map((reason) => (reason as Error).message)).toEqual([
    "cancelled",
    "The client did not answer within 10 minutes.",
    "The server is stopping.",
  ]);
});

test("a tenant with a hundred waiting calls is not asked about more; another tenant is", async () => {
  using paused = new PausedCalls();
  for (let at = 0; at < 100; at += 1) await paused.start(asking(1), round(), ann);
  expect(answersOf(await paused.start(asking(1), round(), ann))).toEqual([false]);
  expect(questionsOf(await paused.start(asking(1), round(), bob)).ids).toHaveLength(1);
});
