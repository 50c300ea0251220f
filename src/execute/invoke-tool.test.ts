import { expect, it, vi } from "vitest";
import { createToolCatalog } from "../tools/create-tool-catalog.ts";
import { createToolPolicy } from "../tools/tool-policy.ts";
import { sampleSource, sampleTool } from "../tools/fixtures/sample-tools.ts";
import { createInvokeTool } from "./invoke-tool.ts";
import { createSessionState } from "./session/create-session-state.ts";

it("resolves the tool of a call once, with session state too", async () => {
  const catalog = createToolCatalog({ sources: [sampleSource("market", [sampleTool({ annotations: { readOnlyHint: true } })])] });
  const resolve = vi.spyOn(catalog, "resolve");
  const session = createSessionState({ configuration: {}, sessionPresent: true }).open(null);
  const invoke = createInvokeTool({ catalog, policy: createToolPolicy(), session });
  const { signal } = new AbortController();
  expect(await invoke({ name: "get_price", args: {}, signal })).toMatchObject({ ok: true, answer: { output: { fine: true } } });
  expect(resolve).toHaveBeenCalledTimes(1);
});
