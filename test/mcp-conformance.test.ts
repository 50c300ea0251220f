import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withConformanceTools } from "./fixtures/conformance-surface.ts";
import { openMcpEndpoint, type TestEndpoint } from "./fixtures/open-mcp-endpoint.ts";

const HANG_MS = 300_000;
const conformance = path.resolve(import.meta.dirname, "../node_modules/.bin/conformance");

const noPrompts = "The server has no prompts.";
const noCompletion = "The server completes no arguments: it has no prompts, and list_data lists the names of data.";
const noClientRequests =
  "The server asks its client only to approve calls of backend tools (test/mcp-approval.test.ts). The scenarios need other questions, sampling or roots.";
const noTasks = "The server does not support the tasks extension: a cell ends within its time limit and reports progress.";
const noLogging = "The server sends no log messages: logs go to standard error, failures into results.";
const noSubscriptions = "Data under an alias does not change, so there is nothing to subscribe to.";

/** Scenarios about features that this server does not have, with the reason. Every other scenario must pass. */
const notApplicable: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "2025-11-25": {
    "completion-complete": noCompletion,
    "elicitation-sep1034-defaults": noClientRequests,
    "elicitation-sep1330-enums": noClientRequests,
    "logging-set-level": noLogging,
    "prompts-get-embedded-resource": noPrompts,
    "prompts-get-simple": noPrompts,
    "prompts-get-with-args": noPrompts,
    "prompts-get-with-image": noPrompts,
    "prompts-list": noPrompts,
    "resources-subscribe": noSubscriptions,
    "resources-unsubscribe": noSubscriptions,
    "server-sse-polling":
      "Streams cannot be resumed: a cell is stopped when its client disconnects. The suite itself lists this scenario as pending.",
    "tools-call-elicitation": noClientRequests,
    "tools-call-sampling": noClientRequests,
    "tools-call-with-logging": noLogging,
  },
  "2026-07-28": {
    caching: "One of its eight checks asks for prompts/list; the other seven pass.",
    "completion-complete": noCompletion,
    "http-custom-header-server-validation":
      "No tool takes arguments in headers. For an exposed tool, that concerns only us and its server. Pending in the suite.",
    "input-required-result-basic-elicitation": noClientRequests,
    "input-required-result-basic-list-roots": noClientRequests,
    "input-required-result-basic-sampling": noClientRequests,
    "input-required-result-capability-check": noClientRequests,
    "input-required-result-multi-round": noClientRequests,
    "input-required-result-multiple-input-requests": noClientRequests,
    "input-required-result-non-tool-request": noClientRequests,
    "input-required-result-request-state": noClientRequests,
    "input-required-result-result-type": noClientRequests,
    "input-required-result-tampered-state": noClientRequests,
    "prompts-get-embedded-resource": noPrompts,
    "prompts-get-simple": noPrompts,
    "prompts-get-with-args": noPrompts,
    "prompts-get-with-image": noPrompts,
    "prompts-list": noPrompts,
    "tasks-capability-negotiation": noTasks,
    "tasks-dispatch-and-envelope": noTasks,
    "tasks-lifecycle": noTasks,
    "tasks-mrtr-composition": noTasks,
    "tasks-mrtr-input": noTasks,
    "tasks-request-headers": noTasks,
    "tasks-request-state-removal": noTasks,
    "tasks-required-task-error": noTasks,
    "tasks-wire-fields": noTasks,
  },
};
/** How many scenarios the suite has for each version. Fewer would mean that it stopped early. */
const scenarios: Readonly<Record<string, number>> = { "2025-11-25": 33, "2026-07-28": 50 };

interface Check {
  readonly id: string;
  readonly status: string;
}

describe("the official conformance suite against our transport and handlers", () => {
  let opened: TestEndpoint;
  beforeAll(async () => {
    opened = await openMcpEndpoint({ extend: withConformanceTools });
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  test.each(["2025-11-25", "2026-07-28"])("every applicable scenario of %s passes", { timeout: HANG_MS }, async (version) => {
    const directory = mkdtempSync(path.join(tmpdir(), "sluice-conformance-"));
    try {
      // The suite exits with 1 when any scenario fails; its files have the details.
      await promisify(execFile)(conformance, ["server", "--url", opened.url, "--requirements", version, "-o", directory]).catch(() => {});
      const ran = readdirSync(directory).map((name) => toScenario(directory, name));
      const failed = ran.filter(({ failures }) => failures.length > 0);
      expect(failed.map(({ name }) => name)).toEqual(Object.keys(notApplicable[version]!));
      expect(failed.find(({ name }) => name === "caching")?.failures ?? []).toEqual(
        version === "2026-07-28" ? ["sep-2549-prompts-list-caching-hints"] : [],
      );
      expect(ran.length).toBe(scenarios[version]);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});

function toScenario(directory: string, folder: string): { name: string; failures: string[] } {
  const name = folder.replace(/^server-/, "").replace(/-\d{4}-\d\d-\d\dT.*$/, "");
  const checks = JSON.parse(readFileSync(path.join(directory, folder, "checks.json"), "utf8")) as Check[];
  return { name, failures: checks.filter(({ status }) => status === "FAILURE").map(({ id }) => id) };
}
