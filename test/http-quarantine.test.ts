import path from "node:path";
import { execFile as execFileWithCallback } from "node:child_process";
import { promisify } from "node:util";
import { DatabaseSync } from "node:sqlite";
import { afterEach, describe, expect, test } from "vitest";
import type { ConversationDocument } from "../src/protocol/http-conversations.ts";
import { conversationSchema } from "../src/protocol/http-conversations.ts";
import { type Readiness, readinessSchema } from "../src/protocol/http-operations.ts";
import { turnDocumentSchema } from "../src/protocol/http-turns.ts";
import { openTestServer, type TestServer } from "./fixtures/open-test-server.ts";

const execFile = promisify(execFileWithCallback);
const sluice = path.join(import.meta.dirname, "..", "bin", "sluice");

describe("stored entries that cannot be read", { timeout: 240_000 }, () => {
  let open: TestServer;
  afterEach(() => open[Symbol.asyncDispose]());

  /** Stops the server, changes its database, and starts it again. */
  async function damage(...changes: string[]): Promise<void> {
    const file = path.join(open.server.parts.configured.configuration.artifacts.directory, "history.sqlite");
    await open.server.close();
    const database = new DatabaseSync(file);
    for (const sql of changes) expect(database.prepare(sql).run().changes, sql).toBeGreaterThan(0);
    database.close();
    await open.restart();
  }
  async function readEntries(): Promise<string | null> {
    const { status, body } = await open.call<Readiness>("GET", "/readyz", undefined, readinessSchema);
    expect([status, body.status]).toEqual([200, "ready"]);
    return body.checks.find(({ name }) => name === "entries")!.detail;
  }
  /** The search for such entries runs beside the server. */
  async function untilFound(count: number): Promise<string> {
    for (;;) {
      const detail = await readEntries();
      if (Number.parseInt(detail ?? "0", 10) >= count) return detail!;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  const conversation = (id: string) => open.call<ConversationDocument>("GET", `/api/conversations/${id}`, undefined, conversationSchema);

  test("neither stop the server from starting nor hide the rest of their conversation, and are reported and deleted", async () => {
    open = await openTestServer();
    const ask = async (conversationId: string) =>
      (await open.call("POST", "/api/turns", { question: "Go.", conversationId, wait: true }, turnDocumentSchema)).body;
    const turns = await Promise.all(["events", "result", "aliases", "killed"].map(ask));
    const [withEvents, withResult, withAliases, killed] = turns.map(({ turnId }) => turnId);
    await open.request("/api/conversations/aliases/files?name=x.csv", { method: "POST", body: "a\n1\n" });
    expect(await readEntries()).toBeNull();
    const ofKilled = `turn_id = '${killed}'`;
    await damage(
      `UPDATE events SET event = '{"type":"artifact"}' WHERE turn_id = '${withEvents}' AND event ->> 'type' = 'artifact'`,
      `UPDATE turns SET result = substr(result, 1, 100) WHERE id = '${withResult}'`,
      `UPDATE evidence SET record = '[]' WHERE alias = 'get_prices_1' AND conversation_id = 'aliases'`,
      `UPDATE uploads SET record = 'x' WHERE conversation_id = 'aliases'`,
      `UPDATE artifacts SET content_hash = '../../../etc/passwd' WHERE type = 'png' AND turn_id = '${withAliases}'`,
      `UPDATE turns SET status = 'running', result = NULL, ended_at = NULL, stop_reason = NULL WHERE id = '${killed}'`,
      `DELETE FROM events WHERE ${ofKilled} AND event ->> 'type' = 'turn-end'`,
      `UPDATE events SET event = 'null' WHERE ${ofKilled} AND event ->> 'type' = 'plan'`,
    );

    const gaps = async (turnId: string): Promise<string[]> => {
      const { body } = await open.call("GET", `/api/turns/${turnId}`, undefined, turnDocumentSchema);
      expect([body.status, body.result!.conversationId]).toEqual(["ended", body.conversationId]);
      return body.result!.gaps.map(({ code }) => code);
    };
    for (const id of ["events", "result", "killed"]) {
      const { status, body } = await conversation(id);
      const { parts } = body.messages.find(({ role }) => role === "assistant")!;
      const shown = parts.find(({ type }) => type === "data-gaps")!["data"] as { gaps: { code: string; detail: string }[] };
      expect([id, status, shown.gaps.map(({ code }) => code)]).toEqual([id, 200, expect.arrayContaining(["entry_unreadable"])]);
    }
    expect(await gaps(withEvents!)).toContain("entry_unreadable");
    expect(await gaps(withResult!)).toContain("entry_unreadable");
    expect(await gaps(killed!)).toEqual(["server_stopped", "entry_unreadable"]);
    const { status, body } = await conversation("aliases");
    expect([status, body.aliases.map(({ alias }) => alias)]).toEqual([200, ["result_1"]]);
    expect(await gaps(withAliases!)).toContain("entry_unreadable");

    const detail = await untilFound(6);
    expect(detail).toBe(
      "6 stored entries could not be read and were put aside; conversations work without them. To see them: sluice quarantine. To delete them: sluice quarantine --delete.",
    );
    const cwd = path.dirname(open.server.parts.configured.configuration.artifacts.directory);
    const { directory } = open.server.parts.configured.configuration.artifacts;
    const run = async (...args: string[]): Promise<string> => {
      const { stdout } = await execFile(sluice, args, { cwd, env: { ...process.env, SLUICE_DATA: path.dirname(directory) } });
      return stdout;
    };
    expect((JSON.parse(await run("doctor", "--json")) as { history: object }).history).toEqual({ quarantined: 6, detail });
    expect(await run("quarantine")).toMatch(
      / local, conversation aliases, turn \S+: artifact \.\.\/\.\.\/\.\.\/etc\/passwd names no file \(/,
    );
    expect((await run("quarantine", "--delete")).endsWith("Deleted: 6.\n")).toBe(true);
    expect([await readEntries(), await run("quarantine")]).toEqual([
      null,
      "Nothing was put aside: all stored entries that were read could be read.\n",
    ]);
    for (const id of ["events", "result", "aliases", "killed"]) {
      expect((await conversation(id)).status).toBe(200);
      expect((await open.call("DELETE", `/api/conversations/${id}`)).status).toBe(204);
    }
  });
});
