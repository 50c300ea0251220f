import assert from "node:assert/strict";
import type { AttackCase } from "../attack-case.ts";

const foreign = { origin: "https://evil.example", "sec-fetch-site": "cross-site" };

export const loginCrossSite: AttackCase = {
  name: "login-cross-site",
  what: "requests from another site's page: opening login links, pressing their button, writing with a cookie",
  async run({ hostile: { url } }) {
    const opened = await fetch(`${url}/login?code=${"a".repeat(43)}`, { headers: foreign, redirect: "manual" });
    await opened.arrayBuffer();
    assert.equal(opened.headers.get("set-cookie"), null, "opening a link logs in");
    const pressed = await fetch(`${url}/login`, {
      method: "POST",
      headers: foreign,
      body: new URLSearchParams({ code: "a" }),
      redirect: "manual",
    });
    await pressed.arrayBuffer();
    assert.deepEqual([pressed.status, pressed.headers.get("set-cookie")], [403, null]);
    for (const headers of [foreign, { ...foreign, cookie: "sluice_session=forged" }]) {
      const asked = await fetch(`${url}/api/turns`, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify({ question: "Who am I?" }),
      });
      await asked.arrayBuffer();
      assert.ok([401, 403].includes(asked.status), `a request of another site was answered with ${asked.status}`);
    }
  },
};
