import { afterEach, describe, expect, test } from "vitest";
import type { TurnDocument } from "../src/protocol/http-turns.ts";
import { openTestServer, plainScript, readEvents, type TestServer } from "./fixtures/open-test-server.ts";

describe("the limit of a conversation on disk", { timeout: 240_000 }, () => {
  let open: TestServer;
  afterEach(() => open[Symbol.asyncDispose]());

  const upload = async (id: string, bytes: number, name = "x.csv", asStream = false) => {
    const text = `a\n${"1\n".repeat(bytes / 2 - 1)}`;
    const body = asStream ? new Blob([text]).stream() : text;
    const response = await open.request(`/api/conversations/${id}/files?name=${name}`, {
      method: "POST",
      body,
      duplex: "half",
    });
    return { status: response.status, body: (await response.json()) as { alias?: string; error?: { code: string; message: string } } };
  };
  const sizeOf = (id: string): number => open.server.parts.storesOf("local").sizeOfConversation(id);
  const ask = async (conversationId: string) =>
    await open.call<TurnDocument & { error?: { code: string; message: string } }>("POST", "/api/turns", {
      question: "Go.",
      conversationId,
      wait: true,
    });
  async function reasonsOf(turnId: string): Promise<(string | undefined)[]> {
    const reasons: (string | undefined)[] = [];
    for await (const { data } of readEvents(await open.request(`/api/turns/${turnId}/events`)))
      if (data["type"] === "tool-end" || data["status"] !== undefined) reasons.push(data["reason"] as string | undefined);
    return reasons;
  }

  test("refuses an upload that does not fit, announced or not, and keeps everything else", async () => {
    open = await openTestServer({ configuration: { server: { conversationBytes: 2_000_000 } } });
    expect((await upload("c", 1_200_000)).body.alias).toBe("x");
    const before = sizeOf("c");
    for (const asStream of [false, true]) {
      const refused = await upload("c", 1_000_000, "y.csv", asStream);
      expect([refused.status, refused.body.error]).toEqual([
        413,
        {
          code: "CONVERSATION_FULL",
          message: expect.stringMatching(
            /^The file "y\.csv" .* the conversation (?:would have|has) \d+ bytes on disk.*; 2000000 are allowed \(server\.conversationBytes\)\.$/,
          ),
          hint: "Start a new conversation, delete turns of this one, or let the operator raise server.conversationBytes.",
          details: expect.anything(),
        },
      ]);
    }
    expect([sizeOf("c"), open.server.parts.uploads.blobsOf("local").list().length]).toEqual([before, 1]);
    expect((await upload("c", 600_000, "z.csv")).status).toBe(201);
    const rows = await open.call<{ total: number }>("GET", "/api/conversations/c/aliases/x/rows?limit=1");
    expect([rows.status, rows.body.total]).toEqual([200, 599_999]);
    expect((await upload("other", 1_000_000)).status).toBe(201);
  });

  test("refuses evidence and artifacts that do not fit, as an error of their call, and keeps the rest of the turn", async () => {
    open = await openTestServer();
    const { body: whole } = await ask("whole");
    const size = sizeOf("whole");
    const [image] = whole.result!.artifacts as { bytes: number }[];
    const items = open.server.parts.history.evidence.list("local", "whole");
    const evidence = items.find(({ alias }) => alias === "get_prices_1")!.bytes;
    expect(size).toBeGreaterThan(image!.bytes + evidence);

    await open.restart({ script: plainScript, configuration: { server: { conversationBytes: evidence } } });
    const { body: noEvidence } = await ask("a");
    const reasons = await reasonsOf(noEvidence.turnId);
    expect(reasons[0]).toContain(`; ${evidence} are allowed (server.conversationBytes)`);
    expect([noEvidence.status, open.server.parts.history.evidence.list("local", "a")]).toEqual(["ended", []]);

    await open.restart({ script: plainScript, configuration: { server: { conversationBytes: evidence + image!.bytes } } });
    const { body: noImage } = await ask("b");
    expect(noImage.result!.artifacts).toEqual([]);
    expect((await reasonsOf(noImage.turnId))[1]).toContain(`The artifact has ${image!.bytes} bytes. With it, the conversation would have `);
    const kept = open.server.parts.history.evidence.list("local", "b").map(({ alias }) => alias);
    expect(kept).toEqual(["get_prices_1", "result_1"]);
    expect((await open.request("/api/conversations/b/aliases/get_prices_1/rows")).status).toBe(200);

    await open.restart({ script: plainScript, configuration: { server: { conversationBytes: sizeOf("b") - 1 } } });
    const refused = await ask("b");
    expect([refused.status, refused.body.error?.code, refused.body.error?.message]).toEqual([
      413,
      "CONVERSATION_FULL",
      expect.stringMatching(/^A turn was refused: the conversation has \d+ bytes on disk/),
    ]);
    expect((await open.call("DELETE", `/api/turns/${noImage.turnId}`)).status).toBe(204);
    expect((await ask("b")).status).toBe(200);
  });
});
