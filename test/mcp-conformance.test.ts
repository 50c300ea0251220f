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

const noPrompts = "It publishes no prompts.";
const noCompletion = "It completes no arguments: it publishes no prompts, and the names of data come with list_data.";
const asksNobody = "It never asks a client for anything: no sampling, no elicitation, no roots.";
const noTasks = "Tasks are an extension that it does not have: a cell ends within its time limit, and says how far it is.";
const noLogging = "It sends no log messages: logs go to standard error, failures into results.";
const noSubscriptions = "Data under an alias does not change, so that there is nothing to subscribe to.";

/** What of the suite is about things that this server does not offer. Whatever else fails is a fault of it. */
const notApplicable: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "2025-11-25": {
    "completion-complete": noCompletion,
    "elicitation-sep1034-defaults": asksNobody,
    "elicitation-sep1330-enums": asksNobody,
    "logging-set-level": noLogging,
    "prompts-get-embedded-resource": noPrompts,
    "prompts-get-simple": noPrompts,
    "prompts-get-with-args": noPrompts,
    "prompts-get-with-image": noPrompts,
    "prompts-list": noPrompts,
    "resources-subscribe": noSubscriptions,
    "resources-unsubscribe": noSubscriptions,
    "server-sse-polling":
      "Its streams cannot be resumed: a cell whose client is gone is ended. The suite itself counts this one as pending.",
    "tools-call-elicitation": asksNobody,
    "tools-call-sampling": asksNobody,
    "tools-call-with-logging": noLogging,
  },
  "2026-07-28": {
    caching: "One of its eight checks asks for prompts/list; the other seven pass.",
    "completion-complete": noCompletion,
    "http-custom-header-server-validation":
      "No tool of it has arguments that ride in headers; where an exposed one has, that is between us and its server. Pending in the suite.",
    "input-required-result-basic-elicitation": asksNobody,
    "input-required-result-basic-list-roots": asksNobody,
    "input-required-result-basic-sampling": asksNobody,
    "input-required-result-capability-check": asksNobody,
    "input-required-result-multi-round": asksNobody,
    "input-required-result-multiple-input-requests": asksNobody,
    "input-required-result-non-tool-request": asksNobody,
    "input-required-result-request-state": asksNobody,
    "input-required-result-result-type": asksNobody,
    "input-required-result-tampered-state": asksNobody,
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
/** How many scenarios the suite has for a version: fewer would mean that it stopped early. */
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

  test.each(["2025-11-25", "2026-07-28"])("every scenario of %s that applies passes", { timeout: HANG_MS }, async (version) => {
    const directory = mkdtempSync(path.join(tmpdir(), "sluice-conformance-"));
    try {
      // It exits with 1 when anything fails; what counts is in its files.
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
