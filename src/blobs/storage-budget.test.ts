import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { createEvidenceStore } from "../evidence/create-evidence-store.ts";
import { createStorageBudget } from "./storage-budget.ts";

const chunks = (count: number, bytes = 600_000): Readable => Readable.from(Array.from({ length: count }, () => Buffer.alloc(bytes)));

test("admits exactly as much as is allowed, and names the limit and the numbers when it refuses", () => {
  const storage = createStorageBudget({ maxBytes: 100, measure: () => 60 });
  storage.check("The artifact", 40);
  expect(() => storage.check("The artifact", 41)).toThrow(
    expect.objectContaining({
      code: "CONVERSATION_FULL",
      message:
        "The artifact has 41 bytes. With it, the conversation would have 101 bytes on disk; 100 are allowed (server.conversationBytes).",
      details: { bytes: 41, seen: 101, allowed: 100 },
    }),
  );
});

test("counts content that several senders send at once, announced or not, until each is done", async () => {
  let stored = 0;
  const storage = createStorageBudget({ maxBytes: 10_000_000, measure: () => stored });
  const announced = storage.expect("The file a", 6_000_000);
  expect(() => storage.expect("The file b", 4_000_001)).toThrow("10000001 bytes on disk; 10000000 are allowed");
  using growing = storage.expect("The file c", 0);
  let passed = 0;
  const all = async (): Promise<void> => {
    for await (const chunk of growing.count(chunks(20))) passed += chunk.length;
  };
  await expect(all()).rejects.toThrow("The file c was refused: the conversation has 10800000 bytes on disk, with what is arriving;");
  expect(passed).toBe(4_200_000); // refused before everything has arrived
  growing[Symbol.dispose]();
  stored = 6_000_000;
  announced[Symbol.dispose]();
  storage.check("The artifact", 4_000_000);
});

test("refuses content that is larger than announced, also by less than one check", async () => {
  const storage = createStorageBudget({ maxBytes: 1_000_000, measure: () => 0 });
  using arrival = storage.expect("The file a", 10);
  await expect(Array.fromAsync(arrival.count(chunks(2)))).rejects.toThrow("1200000 bytes on disk");
});

test("refuses evidence that does not fit, and keeps what is there", async () => {
  const evidence = createEvidenceStore({ storage: createStorageBudget({ maxBytes: 50, measure: () => evidence.totalBytes }) });
  evidence.add({ tool: "get_words", output: "x".repeat(40) });
  const more = { tool: "get_words", output: "y".repeat(40) };
  const refusal = "get_words_2 has 40 bytes. With it, the conversation would have 80 bytes on disk; 50 are allowed";
  expect(() => evidence.add(more)).toThrow(refusal);
  await expect(evidence.keep(more)).rejects.toThrow(refusal);
  expect([evidence.aliases(), Buffer.from(evidence.get("get_words_1")!.read()).length]).toEqual([["get_words_1"], 40]);
});
