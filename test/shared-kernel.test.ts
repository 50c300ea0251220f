import { hash } from "node:crypto";
import { expect, test } from "vitest";
import { openTestServer } from "./fixtures/open-test-server.ts";

const tokenOf = (tenant: string): { tenant: string; sha256: string } => ({ tenant, sha256: hash("sha256", `${tenant}-token`) });
const auth = { tokens: [tokenOf("alice"), tokenOf("bob")] };
const sandbox = { driver: "bubblewrap", poolSize: 0 };

test("a server with several tenants does not start on bubblewrap, and the error has the line that accepts the risk", async () => {
  const opening = openTestServer({ configuration: { auth, sandbox } });
  await expect(opening).rejects.toMatchObject({
    code: "TENANTS_SHARE_KERNEL",
    message:
      "This server has 2 tenants, and under bubblewrap their cells would share the kernel of this machine. Cells of one tenant could then signal to those of another, and a bug of the kernel would open the way to its data.",
    hint: expect.stringContaining('"server": { "allowTenantsToShareKernel": true }'),
  });
});

test("it starts when the configuration accepts the risk", async () => {
  const configuration = { auth, sandbox, server: { allowTenantsToShareKernel: true } };
  await using server = await openTestServer({ configuration, token: "alice-token" });
  expect(server.server.driver).toBe("bubblewrap");
  for (const token of ["alice-token", "bob-token"]) expect((await server.request("/api/conversations", { token })).status).toBe(200);
});

test.each([
  ["one tenant with several tokens", { auth: { tokens: [tokenOf("alice"), { ...tokenOf("bob"), tenant: "alice" }] }, sandbox }, false],
  ["no token at all", { auth, sandbox }, true],
])("a server with %s starts on bubblewrap", async (_, configuration, isOpen) => {
  await using server = await openTestServer({ configuration, isOpen });
  expect(server.server.driver).toBe("bubblewrap");
});

test("several tenants need no option under gVisor", async () => {
  await using server = await openTestServer({ configuration: { auth, sandbox: { ...sandbox, driver: "gvisor" } } });
  expect(server.server.driver).toBe("gvisor");
});
