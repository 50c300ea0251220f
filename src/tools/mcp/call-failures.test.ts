import { expect, it } from "vitest";
import { failureOfError } from "../tool-failure.ts";
import { fixtureEntry, openHttpFixture, openSource } from "./fixtures/open-fixture.ts";

/** Converts the rejection of a call to the error that a model reads. */
async function toolErrorOf(call: Promise<unknown>): Promise<unknown> {
  const error = await call.then(
    () => null,
    (reason: unknown) => reason,
  );
  const failure = failureOfError(error, { tool: "fixture__it" });
  return failure.kind === "toolError" ? failure.toolError : failure;
}

it("reports a stopped server as unreachable and retryable", async () => {
  const clock = { time: 0, now: () => clock.time };
  await using server = await openHttpFixture("sdk-server", "--http", "0");
  await using fixture = openSource({ server: { url: server.url }, clock });
  const echo = await fixture.tool("echo");
  await server.kill();
  const unreachable = {
    error_kind: "upstream_http",
    error_code: "UPSTREAM_UNREACHABLE",
    retryable: true,
    summary: "fixture__it failed: there is no connection to the backend.",
  };
  for (const _ of ["the connection is lost", "nothing listens", "waiting before the next attempt"]) {
    expect(await toolErrorOf(echo.call({}, {}))).toMatchObject(unreachable);
  }
});

it("reports a server that exits during a call as unreachable", async () => {
  await using fixture = openSource({ server: fixtureEntry("sdk-server") });
  expect(await toolErrorOf(fixture.call("die", { code: 7 }))).toMatchObject({
    error_code: "UPSTREAM_UNREACHABLE",
    details: [
      {
        path: "",
        issue: "MCP_CONNECTION_LOST.",
        received_type: "missing",
        upstream_code: "MCP_CONNECTION_LOST",
        upstream_message: "The server's process exited with code 7 during the call. Its last lines on stderr: about to die",
      },
    ],
  });
});

it("reports a timeout as retryable", async () => {
  await using fixture = openSource({ server: fixtureEntry("sdk-server"), timeoutMs: 1_000 });
  expect(await toolErrorOf(fixture.call("slow", { steps: 1, stepMs: 60_000 }))).toMatchObject({
    error_kind: "upstream_http",
    error_code: "UPSTREAM_HTTP_TIMEOUT",
    retryable: true,
  });
});

it("keeps the HTTP status and Retry-After", async () => {
  await using server = await openHttpFixture("old-http-server");
  await using fixture = openSource({ server: { url: server.url } });
  expect(await toolErrorOf(fixture.call("busy"))).toMatchObject({
    error_kind: "rate_limited",
    error_code: "UPSTREAM_HTTP_429",
    retryable: true,
    _meta: { retry_after_seconds: 7 },
  });
  expect(await toolErrorOf(fixture.call("refuse"))).toMatchObject({
    error_kind: "upstream_http",
    error_code: "UPSTREAM_HTTP_503",
    retryable: true,
  });
});

it("keeps the message of a JSON-RPC error", async () => {
  await using fixture = openSource({ server: fixtureEntry("old-server") });
  expect(await toolErrorOf(fixture.call("tool_2"))).toEqual({
    kind: "plain",
    type: "McpCallError",
    message: 'The server "fixture" answered with error -32602: Unknown tool: tool_2',
  });
});
