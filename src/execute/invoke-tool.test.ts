import { expect, it, vi } from "vitest";
import { createEvidenceStore } from "../evidence/create-evidence-store.ts";
import { createToolCatalog } from "../tools/create-tool-catalog.ts";
import { createToolPolicy } from "../tools/tool-policy.ts";
import { sampleSource, sampleTool } from "../tools/fixtures/sample-tools.ts";
import { createInvokeTool } from "./invoke-tool.ts";
import { createIdentityState } from "./identity/create-identity-state.ts";

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
