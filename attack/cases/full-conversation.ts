import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { AttackCase } from "../attack-case.ts";

const LINE_CHARACTERS = 100_000;

export const fullConversation: AttackCase = {
  name: "full-conversation",
  what: "uploads until the disk space of a conversation is used up",
  async run({ hostile: { request }, server: { limits } }) {
    const { conversationBytes, uploadBytes } = limits;
    const conversation = `/api/conversations/${randomUUID()}`;
    const answers: string[] = [];
    for (let bytes = 0; bytes <= conversationBytes; bytes += uploadBytes) {
      const line = `${answers.length}${"x".repeat(LINE_CHARACTERS)}\n`; // identical files count once
      const body = `text\n${line.repeat(Math.floor((uploadBytes - 10) / line.length))}`;
      const response = await request(`${conversation}/files?name=file${answers.length}.csv`, { method: "POST", body });
      answers.push(`${response.status} ${await response.text()}`);
    }
    assert.ok(answers[0]!.startsWith("201 "), answers[0]!.slice(0, 500));
    assert.match(answers.at(-1)!, /^413 .*CONVERSATION_FULL.*server\.conversationBytes/s);
    const removed = await request(conversation, { method: "DELETE" });
    assert.equal(removed.status, 204, "a full conversation cannot be deleted");
  },
};
