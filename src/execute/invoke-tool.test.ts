import { expect, it, vi } from "vitest";
import { createEvidenceStore } from "../evidence/create-evidence-store.ts";
import { createToolCatalog } from "../tools/create-tool-catalog.ts";
import { createToolPolicy } from "../tools/tool-policy.ts";
import { sampleSource, sampleTool } from "../tools/fixtures/sample-tools.ts";
import { createInvokeTool } from "./invoke-tool.ts";
import { createIdentityState } from "./identity/create-identity-state.ts";

it("answers get_session_state without an identity context", async () => {
  const invoke = createInvokeTool({ catalog: createToolCatalog({ sources: [] }), policy: createToolPolicy() });
  const call = { args: {}, signal: new AbortController().signal, evidence: createEvidenceStore({ conversationId: "c" }) };
  expect(await invoke({ ...call, name: "get_session_state" })).toEqual({
    ok: true,
    json: '{"session_present":false,"state_scope":"request","state_reason":"no_mcp_session"}',
  });
  expect(await invoke({ ...call, name: "set_region" })).toMatchObject({
    ok: false,
    failure: { toolError: { error_code: "TOOL_NOT_FOUND" } },
  });
});

it("resolves the tool of a call only once, with an identity context too", async () => {
  const catalog = createToolCatalog({ sources: [sampleSource("market", [sampleTool({ annotations: { readOnlyHint: true } })])] });
  const resolve = vi.spyOn(catalog, "resolve");
  const identity = createIdentityState({ configuration: {}, sessionPresent: true }).open(null);
  const invoke = createInvokeTool({ catalog, policy: createToolPolicy() });
  const { signal } = new AbortController();
  const evidence = createEvidenceStore();
  expect(await invoke({ name: "get_price", args: {}, signal, evidence, identity })).toMatchObject({ ok: true, aliases: ["get_price_1"] });
  expect(resolve).toHaveBeenCalledTimes(1);
});
