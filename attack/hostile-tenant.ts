import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { turnDocumentSchema, type TurnDocument } from "../src/protocol/http-turns.ts";
import type { Reply } from "../test/fixtures/loopback-model.ts";
import type { AttackedServer } from "./attacked-server.ts";

export interface HostileTurn {
  readonly document: TurnDocument;
  /** The bytes of all events, as the server streams them. */
  readonly eventBytes: number;
  /** Why calls failed or were refused, in order. */
  readonly reasons: readonly string[];
}

export interface HostileTenant {
  readonly url: string;
  /** The tenant's token, for requests that are written by hand. */
  readonly headers: Readonly<Record<string, string>>;
  /** Sends the tenant's token. */
  request(path: string, options?: HostileRequest): Promise<Response>;
  /** Runs a turn whose model wants these calls, and reads everything that the server then says about it. */
  turn(calls: readonly HostileCall[], options?: { readonly answer?: string }): Promise<HostileTurn>;
}

export interface HostileRequest extends RequestInit {
  readonly headers?: Readonly<Record<string, string>>;
}

export interface HostileCall {
  readonly tool: string;
  readonly input: unknown;
}

/** A call of `code_interpreter`. */
export function cell(code: string, expectedArtifacts: readonly ("image" | "chart")[] = []): HostileCall {
  const postProcessingContract = { operation: "other", reason: "To attack.", inputAliases: ["get_prices_1"], expectedArtifacts };
  return { tool: "code_interpreter", input: { code, postProcessingContract } };
}

export function createHostileTenant({ process: { url }, model, tokens }: AttackedServer): HostileTenant {
  const headers = { authorization: `Bearer ${tokens.hostile}` };
  const request = (path: string, options: HostileRequest = {}): Promise<Response> => {
    return fetch(new URL(path, url), { ...options, headers: { ...headers, ...options.headers } });
  };
  return {
    ...{ url, headers },
    request,
    async turn(calls, { answer = "Done." } = {}) {
      const key = `script-${randomUUID()}`;
      const final: Reply = { calls: [{ tool: "final_response", input: { answer } }] };
      const all = [{ tool: "get_prices", input: {} }, ...calls];
      await model.setScript(key, [...all.map((call): Reply => ({ calls: [call] })), final]);
      const created = await request("/api/turns", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ question: `Attack (${key}).`, wait: true }),
      });
      const text = await created.text();
      assert.equal(created.status, 200, `the turn was not answered: ${created.status} ${text.slice(0, 500)}`);
      const document = turnDocumentSchema.parse(JSON.parse(text));
      assert.equal(document.status, "ended");
      const conversation = await request(`/api/conversations/${document.conversationId}`);
      await conversation.arrayBuffer();
      assert.equal(conversation.status, 200, "the conversation cannot be read");
      const events = await (await request(`/api/turns/${document.turnId}/events`)).text();
      assert.ok(events.includes('"type":"turn-end"'), "the events of the turn have no end");
      const reasons = [...events.matchAll(/^data: (.*"type":"tool-end".*)$/gm)].flatMap(
        ([, data]) => (JSON.parse(data!) as { reason?: string }).reason ?? [],
      );
      return { document, eventBytes: Buffer.byteLength(events), reasons };
    },
  };
}

/** Asserts that the reason of the first failed call has the name of this limit, or what it says about it. */
export function assertLimit({ reasons }: HostileTurn, name: string): void {
  assert.ok(reasons[0]?.includes(name), `no call ended by the limit ${name}: ${JSON.stringify(reasons).slice(0, 500)}`);
}
