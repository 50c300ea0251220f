/**
 * Runs one script instead of twenty round trips. It reads the campaigns of an ads service page by page, fetches their metrics concurrently and catches failures.
 * Then a sandboxed cell computes totals from the tool outputs. Run it: `node examples/code-mode.ts`. Normally, a model writes the script and the cell.
 */
import path from "node:path";
import * as sluice from "../src/index.ts";

const ads = sluice.createMcpSource({
  name: "ads",
  server: { command: process.execPath, args: [path.join(import.meta.dirname, "backends/ads/ads-server.ts")] },
  environment: process.env,
});
const runtime = sluice.createRuntime({ cacheDirectory: sluice.cacheDirectory() });
const evidence = sluice.createEvidenceStore();
const catalog = sluice.createToolCatalog({ sources: [ads] });
/** The identities that the script can choose, and how the choice is sent to the backend. The script sees only the names. */
const rides = (name: string) => [{ as: "meta" as const, name: `sluice/${name}`, servers: ["ads"] }];
const identities = sluice.createIdentityStore({
  configuration: {
    identities: { choices: { acme: {}, globex: {} }, rides: rides("identity") },
    regions: { choices: { na: {}, eu: {}, fe: {} }, rides: rides("region") },
    profiles: { choices: { "eu-acme": { identities: ["acme"] } }, rides: rides("profile") },
  },
});
const identity = identities.open({ tenant: "me", contextId: "example", subject: null });
const codeMode = runtime.createCodeMode({ catalog, policy: sluice.createToolPolicy({}), evidence, identity });
const call = async (name: string, input: unknown): Promise<string> => (await codeMode.find((tool) => tool.name === name)!.run(input)).text;

const script = `
import asyncio, json
await call_tool("set_active_identity", {"identity": "acme"})
await call_tool("set_region", {"region": "eu"})
await call_tool("set_active_profile", {"profile": "eu-acme"})

campaigns, token = [], None
while True:
    page = await call_tool("list_campaigns", {"next_token": token} if token else {})
    campaigns += page["campaigns"]
    token = page["next_token"]
    if not token:
        break

async def usage(campaign):
    try:
        return await call_tool("get_budget_usage", {"campaign_id": campaign["campaign_id"]})
    except RuntimeError as error:
        return json.loads(str(error))["error_code"]

usages = await asyncio.gather(*[usage(campaign) for campaign in campaigns[:20]])
failed = [u for u in usages if isinstance(u, str)]
return {"campaigns": len(campaigns), "usages": len(usages) - len(failed), "failed": failed}
`;
const cell = `
pages = [value for name, value in inputs.items() if "list_campaigns" in name]
campaigns = to_frame([row for page in pages for row in page["campaigns"]])
set_result(campaigns.groupby("state").size().to_dict())
`;

const turn = runtime.createTurn({ id: "example", evidence, artifacts: sluice.createMemoryStore() });
try {
  console.log("search:", JSON.parse(await call("search", { query: "budget of a campaign", limit: 2 })).found);
  const { status, result, aliases, toolCalls, engine, error } = JSON.parse(await call("execute", { code: script }));
  console.log("execute:", status, JSON.stringify(result ?? error), `${toolCalls} calls, ${aliases.length} results kept, on ${engine}`);
  const inputAliases = aliases.map(({ alias }: { alias: string }) => alias);
  const postProcessingContract = { operation: "aggregate", reason: "Campaigns by state.", inputAliases, expectedArtifacts: [] };
  const { outcome, error: failure } = await sluice.runCodeInterpreter(turn, { code: cell, postProcessingContract });
  console.log("code_interpreter:", outcome?.resultJson ?? failure?.summary);
} finally {
  await sluice.disposeTurnSandbox(turn);
  await catalog[Symbol.asyncDispose]();
  await ads[Symbol.asyncDispose]();
  await runtime.close();
}
