import { DefaultChatTransport, readUIMessageStream, type UIMessage, type UIMessageChunk } from "ai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chatDataSchemas, chatMetadataSchema } from "../src/protocol/http-chat.ts";
import { conversationSchema, type ConversationDocument } from "../src/protocol/http-conversations.ts";
import { endlessScript, openTestServer, plainScript, type TestServer } from "./fixtures/open-test-server.ts";

/** Uses the transport of `useChat` from the AI SDK, over loopback, on the default driver. */
describe("POST /api/chat", { timeout: 240_000 }, () => {
  let open: TestServer;
  beforeAll(async () => {
    open = await openTestServer({ unattendedMs: 60_000 });
  });
  afterAll(() => open[Symbol.asyncDispose]());

  function transport(): DefaultChatTransport<UIMessage> {
    return new DefaultChatTransport({ api: `${open.url}/api/chat`, headers: { authorization: `Bearer ${open.server.tokens.generated}` } });
  }
  const asked = (text: string, id = "u1"): UIMessage => ({ id, role: "user", parts: [{ type: "text", text }] });

  async function ask(chatId: string, messages: UIMessage[], more: object = {}): Promise<ReadableStream<UIMessageChunk>> {
    return await transport().sendMessages({
      trigger: "submit-message",
      chatId,
      messages,
      messageId: undefined,
      abortSignal: undefined,
      ...more,
    });
  }
  async function collect(stream: ReadableStream<UIMessageChunk>): Promise<UIMessage> {
    let last: UIMessage | undefined;
    for await (const message of readUIMessageStream({ stream })) last = message;
    return last!;
  }

  test("streams a turn as typed parts that are identical to the stored message", async () => {
    const message = await collect(await ask("c1", [asked("What is the mean price?")]));
    const types = message.parts.map(({ type }) => type);
    expect(types).toEqual([
      "data-turn-start",
      "data-plan",
      "data-step-start",
      "data-tool-start",
      "data-tool-end",
      "data-step-start",
      "data-tool-start",
      "data-cell-start",
      "data-cell-output",
      "data-tool-end",
      "data-artifact",
      "data-step-start",
      "data-tool-start",
      "data-tool-end",
      "text",
      "data-gaps",
      "data-turn-end",
    ]);
    for (const part of message.parts) {
      if (!part.type.startsWith("data-")) continue;
      const schema = chatDataSchemas[part.type.slice("data-".length) as keyof typeof chatDataSchemas];
      expect([part.type, schema.safeParse((part as { data: unknown }).data).success]).toEqual([part.type, true]);
    }
    const { createdAt } = chatMetadataSchema.parse(message.metadata);
    expect(message.metadata).toEqual({
      turnId: message.id,
      conversationId: "c1",
      status: "ended",
      createdAt,
      stopReason: "complete_answer",
    });
    const text = message.parts.find((part) => part.type === "text")!.text;
    expect(text).toBe("The mean price is 102.98. Figure 1 shows the prices.");

    const { body } = await open.call<ConversationDocument>("GET", "/api/conversations/c1");
    conversationSchema.parse(body);
    expect(body.messages.map(({ id, role }) => [id, role])).toEqual([
      [`${message.id}.user`, "user"],
      [message.id, "assistant"],
    ]);
    expect(body.messages[0]!.parts).toEqual([{ type: "text", text: "What is the mean price?" }]);
    expect(body.messages[1]!.parts).toEqual(JSON.parse(JSON.stringify(message.parts)));
    expect(body.messages[1]!.metadata).toEqual(message.metadata);
    expect(body.aliases.map(({ alias, source, rows, turnId }) => [alias, source, rows, turnId])).toEqual([
      ["get_prices_1", "tool", 300, message.id],
      ["result_1", "result", null, message.id],
    ]);
  });

  test("replaces the last turn when it is regenerated, and all later turns when a question is edited", async () => {
    const first = await collect(await ask("c2", [asked("One?")]));
    const second = await collect(await ask("c2", [asked("Two?")]));
    const again = await collect(await ask("c2", [], { trigger: "regenerate-message", messageId: second.id }));
    const turnsOf = async (): Promise<string[]> =>
      (await open.call<ConversationDocument>("GET", "/api/conversations/c2")).body.messages.map(({ id }) => id);
    expect(await turnsOf()).toEqual([`${first.id}.user`, first.id, `${again.id}.user`, again.id]);
    const edited = await collect(await ask("c2", [asked("One, edited?", `${first.id}.user`)]));
    expect(await turnsOf()).toEqual([`${edited.id}.user`, edited.id]);
    const { body } = await open.call("GET", `/api/turns/${second.id}`);
    expect(body).toMatchObject({ question: "Two?", status: "ended", supersededBy: again.id });
  });

  test("refuses requests without a question, a conversation with a running turn, and invalid ids", async () => {
    const refused = async (body: unknown): Promise<unknown[]> => {
      const { status, body: answer } = await open.call<{ error: { code: string; message: string } }>("POST", "/api/chat", body);
      return [status, answer.error.code, answer.error.message];
    };
    const message = (text: string): object => ({ role: "user", parts: [{ type: "text", text }] });
    expect(await refused({ id: "c3", messages: [message("  ")] })).toEqual([
      400,
      "REQUEST_INVALID",
      "The user's last message has no text.",
    ]);
    expect(await refused({ id: "c3", messages: [], trigger: "regenerate-message" })).toEqual([
      400,
      "REQUEST_INVALID",
      "There is no earlier question to repeat.",
    ]);
    expect(await refused({ id: "../c3", messages: [message("x")] })).toEqual([
      400,
      "REQUEST_INVALID",
      "The body is invalid: id: must be 1 to 128 letters, digits, - or _.",
    ]);
    expect(await refused({ id: "c3", messages: [message("x".repeat(20_001))] })).toEqual([
      400,
      "REQUEST_INVALID",
      "The question has 20001 characters; the limit is 20000. Upload long data as a file instead.",
    ]);
  });

  test("streams a running turn again from its beginning after a page reload, and answers 204 if none is running", async () => {
    await open.restart({ script: endlessScript, unattendedMs: 60_000 });
    expect(await transport().reconnectToStream({ chatId: "c4" })).toBeNull();
    const reader = (await ask("c4", [asked("Go on endlessly.")])).getReader();
    const started = (await reader.read()).value as { messageId: string };
    await reader.cancel(); // the page was closed
    const busy = await open.call<{ error: { code: string } }>("POST", "/api/chat", {
      id: "c4",
      messages: [{ role: "user", parts: [{ type: "text", text: "And now?" }] }],
    });
    expect([busy.status, busy.body.error.code]).toEqual([409, "TURN_RUNNING"]);

    const resumed = (await transport().reconnectToStream({ chatId: "c4" }))!;
    const types: string[] = [];
    for await (const chunk of resumed) {
      types.push(chunk.type);
      if (chunk.type === "start") expect(chunk.messageId).toBe(started.messageId);
      if (chunk.type === "data-cell-output") await open.call("POST", `/api/turns/${started.messageId}/stop`);
    }
    expect(types.slice(0, 3)).toEqual(["start", "data-turn-start", "data-plan"]);
    expect(types.slice(-2)).toEqual(["data-turn-end", "finish"]);
    const { body } = await open.call("GET", `/api/turns/${started.messageId}`);
    expect(body).toMatchObject({ status: "ended", stopReason: "aborted" });
  });

  test("continues a conversation after a restart of the server", async () => {
    await open.restart({ script: plainScript });
    const before = (await open.call<ConversationDocument>("GET", "/api/conversations/c1")).body;
    await open.restart({ script: plainScript });
    const after = (await open.call<ConversationDocument>("GET", "/api/conversations/c1")).body;
    expect(after).toEqual(before);
    const message = await collect(await ask("c1", [asked("And again?")]));
    const ends = message.parts.flatMap((part) =>
      part.type === "data-tool-end" ? [(part as { data: { alias?: string } }).data.alias] : [],
    );
    expect(ends).toEqual(["get_prices_2", "result_2", undefined]);
    const search = await open.call<{ conversations: { id: string; snippet?: string }[] }>("GET", "/api/conversations?q=MEAN%20price%3F");
    expect(search.body.conversations.map(({ id, snippet }) => [id, snippet])).toEqual([["c1", "What is the mean price?"]]);
  });
});
