import { expect, test } from "vitest";
import { interpreterDescriptions } from "../src/prompts/interpreter-tools.ts";
import { describeExecute } from "../src/prompts/describe-execute.ts";
import { defaultExecuteLimits } from "../src/execute/engine.ts";
import { generations, openHttpClient, textOf } from "./fixtures/mcp-clients.ts";
import { openMcpEndpoint } from "./fixtures/open-mcp-endpoint.ts";

const session = { identities: { choices: { a: {} } }, regions: { choices: { eu: {} } }, profiles: { choices: { p: {} } } };

/** Counts more tokens than real tokenizers: one for each punctuation mark, every seven letters of a word and every three digits. */
function countTokens(text: string): number {
  const pieces = text.match(/\p{L}+|\p{N}{1,3}|[^\s\p{L}\p{N}]/gu) ?? [];
  return pieces.reduce((sum, piece) => sum + Math.ceil(piece.length / 7), 0);
}

test.each(generations)("describes everything to a client of %s in under 2,700 tokens", async (generation) => {
  await using opened = await openMcpEndpoint({ configuration: { session } });
  await using client = await openHttpClient(generation, opened.url);
  const tools = await client.tools();
  const text = [client.instructions, ...tools.map(({ description }) => description)].join("\n");
  expect(countTokens(text)).toBeLessThan(2700);
  expect(Buffer.byteLength(text) / 4).toBeLessThan(2700);
  expect(Math.max(...tools.map(({ description }) => Buffer.byteLength(description ?? "")))).toBeLessThanOrEqual(4096);
});

test("uses the librarian's prompt and the shared tool descriptions", async () => {
  await using opened = await openMcpEndpoint();
  await using client = await openHttpClient("2025-11-25", opened.url);
  expect(client.instructions).toBe(
    `${await opened.configured.runtime.librarianPrompt()}\n\nHere: list_data lists the available data, store_data keeps JSON or CSV under a name, execute fetches with backend tools. Aliases and variables persist; a sandbox that is idle for a while is freed, and the next result says so.\nA failed call returns an error object: follow its hints.`,
  );
  const described = Object.fromEntries((await client.tools()).map(({ name, description }) => [name, description]));
  expect(described).toMatchObject(interpreterDescriptions);
});

test("lists every tool with a title, annotations and an input schema", async () => {
  await using opened = await openMcpEndpoint();
  await using client = await openHttpClient("2026-07-28", opened.url);
  const tools = await client.tools();
  expect(tools.map(({ name, title, annotations }) => [name, title, annotations?.readOnlyHint, annotations?.destructiveHint])).toEqual([
    ["code_interpreter", "Run Python on data", true, false],
    ["python_code_edit", "Edit and rerun Python", true, false],
    ["render_chart", "Draw a chart", true, false],
    ["store_data", "Store data", false, false],
    ["list_data", "List data", true, false],
    ["read_data", "Read data", true, false],
    ["search", "Search tools", true, false],
    ["get_schema", "Get schemas of tools", true, false],
    ["tags", "List tags of tools", true, false],
    ["execute", "Execute a script with tools", undefined, false],
    ["get_envelope_contract", "Get the contract of errors", true, false],
    ["get_session_state", "Get session state", true, false],
    ["set_active_identity", "Set active identity", undefined, false],
    ["set_region", "Set region", undefined, false],
    ["set_active_profile", "Set active profile", undefined, false],
    ["get_active_context", "Get active context", true, false],
  ]);
  for (const { inputSchema } of tools) {
    expect(inputSchema).toMatchObject({ type: "object", additionalProperties: false, properties: { session: { type: "string" } } });
  }
});

test("offers the identity tools also when nothing is configured, and each says so", async () => {
  await using opened = await openMcpEndpoint();
  await using client = await openHttpClient("2025-11-25", opened.url);
  const fields = { session_present: true, state_scope: "session", state_reason: null };
  expect(textOf(await client.call("get_session_state"))).toEqual(fields);
  expect(textOf(await client.call("get_active_context"))).toEqual({
    ...fields,
    identity: null,
    region: null,
    profile: null,
    available: { identities: [], regions: [], profiles: [] },
    note: "No identities, regions or profiles are configured (session in the configuration). Tools are called without them.",
  });
  for (const [tool, kind, plural] of [
    ["set_active_identity", "identity", "identities"],
    ["set_region", "region", "regions"],
    ["set_active_profile", "profile", "profiles"],
  ] as const) {
    const refused = await client.call(tool, { [kind]: "EU" });
    expect([refused.isError, textOf(refused)]).toEqual([
      true,
      {
        status: "refused",
        error: {
          error_kind: "mcp_input_validation",
          tool,
          summary: `Unknown ${kind} "EU": no ${plural} are configured.`,
          details: [{ path: kind, issue: `is not one of the configured ${plural}`, received_type: "string" }],
          hints: [
            `Call backend tools without a ${kind}. An operator can add ${plural} to the configuration, under session.${plural}.choices.`,
          ],
          examples: [],
          error_code: "SCHEMA_ENUM_MISMATCH",
          retryable: false,
          _envelope_version: 1,
        },
      },
    ]);
  }
});

test("serves the complete guide to execute as a resource", async () => {
  await using opened = await openMcpEndpoint();
  await using client = await openHttpClient("2025-11-25", opened.url);
  expect(await client.read("sluice://docs/execute")).toMatchObject({
    contents: [
      {
        uri: "sluice://docs/execute",
        mimeType: "text/plain",
        text: describeExecute({ limits: defaultExecuteLimits, engine: "auto", hasCpython: true, hasIdentity: true }),
      },
    ],
  });
});
