import { expect, test } from "vitest";
import { createConversation } from "../create-conversation.ts";
import { Ledger } from "../ledger.ts";
import { findCoverageEvents } from "./build-best-effort-terminal-outcome.ts";

function eventsOf(...results: unknown[]): string[] {
  const conversation = createConversation();
  const ledger = new Ledger();
  for (const result of results) {
    const { alias } = conversation.evidence.addResult({ json: JSON.stringify(result), from: "code_interpreter" });
    const cell = { isOk: true, code: "", inputAliases: [], reason: "", sparseReason: null, sandboxMs: 0 };
    const call = ledger.request({ callId: alias, tool: "code_interpreter", input: {} });
    ledger.end(call, { status: "ok", durationMs: 1, aliases: [alias], cell });
  }
  return findCoverageEvents({ ledger, conversation }).map(({ code, severity, detail }) => `${code} ${severity}: ${detail}`);
}
const harbour = { period: "2025-03-03T00:00:00", entity: "Harbour", kind: "first_listed", value: 35_000.004 };

test("coverage events of several results become one note without duplicates", () => {
  const quarry = { period: "2025-07-01", entity: "Quarry", kind: "delisted", value: null };
  expect(eventsOf({ summary: { coverage_events: [harbour, quarry] } }, { coverage_events: [harbour] })).toEqual([
    "coverage_events info: Coverage changed: Harbour was first listed on 2025-03-03 with 35,000; Quarry was delisted on 2025-07-01.",
  ]);
});

test("a long list of coverage events is cut and counted", () => {
  const many = Array.from({ length: 15 }, (_, at) => ({ ...harbour, entity: `V${at}` }));
  expect(eventsOf({ coverage_events: many })[0]).toMatch(/V11 was first listed on 2025-03-03 with 35,000; and 3 more\.$/);
});

test("values that only look like coverage events are ignored", () => {
  expect(eventsOf({ coverage_events: 4 }, { coverage_events: [null, 1, { entity: "A" }] }, [1, 2], null, { coverage_events: [] })).toEqual(
    [],
  );
});
