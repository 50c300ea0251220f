import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { IdentityContext } from "./identity-context.ts";
import { createIdentityStore, type IdentityStore } from "./create-identity-store.ts";
import { identityConfigurationSchema, type IdentityConfiguration } from "./identity-configuration.ts";

const configuration: IdentityConfiguration = {
  identities: {
    choices: Object.fromEntries(Array.from({ length: 8 }, (_, index) => [`id-${index}`, { value: `secret-${index}` }])),
    rides: [{ as: "header", name: "X-Account", servers: ["ads"] }],
  },
};
const ads = { server: "ads", name: "list", inputSchema: {} };

function create(now: () => number = () => 0): IdentityStore {
  return createIdentityStore({ configuration, idleMs: 1_000, maxContexts: 3, now });
}

const request = (tenant: string, contextId: string, subject: string = `token of ${tenant}`) => ({ tenant, contextId, subject });
const identityOf = (context: IdentityContext): unknown => {
  const answer = context.getActiveContext();
  return answer.ok ? answer.value["identity"] : null;
};

describe("the identity store", () => {
  it("keeps contexts apart", () => {
    const store = create();
    store.open(request("t", "one")).setActiveIdentity("id-1");
    store.open(request("t", "two")).setActiveIdentity("id-2");
    expect(identityOf(store.open(request("t", "one")))).toBe("id-1");
    expect(identityOf(store.open(request("t", "two")))).toBe("id-2");
    expect(identityOf(store.open(request("t", "three")))).toBeNull();
  });

  it("keeps nothing of a context for a single request", () => {
    const store = create();
    const first = store.openRequest();
    first.setActiveIdentity("id-1");
    expect(first.toCallExtras(ads)).toEqual({ headers: { "X-Account": "secret-1" } });
    expect(identityOf(store.openRequest())).toBeNull();
    expect(store.size).toBe(0);
  });

  it("clears a context for both tenants when another tenant uses it", () => {
    const store = create();
    const first = store.open(request("a", "one"));
    first.setActiveIdentity("id-1");
    const second = store.open(request("b", "one"));
    expect(second.getSessionState()).toEqual({ session_present: true, state_scope: "session", state_reason: "token_swapped" });
    expect(second.toCallExtras(ads)).toEqual({});
    expect(first.toCallExtras(ads)).toEqual({});
    second.setActiveIdentity("id-2");
    expect(second.getSessionState().state_reason).toBeNull();
    const third = store.open(request("a", "one"));
    expect(third.toCallExtras(ads)).toEqual({});
    expect(third.getSessionState().state_reason).toBe("token_swapped");
    expect(second.toCallExtras(ads)).toEqual({});
  });

  it("clears a context when another token of the same tenant uses it", () => {
    const store = create();
    store.open(request("a", "one", "x")).setActiveIdentity("id-1");
    expect(store.open(request("a", "one", "y")).toCallExtras(ads)).toEqual({});
  });

  it("forgets idle contexts, and the least recently used when there are too many", () => {
    let now = 0;
    const store = create(() => now);
    store.open(request("t", "one")).setActiveIdentity("id-1");
    now = 900;
    expect(identityOf(store.open(request("t", "one")))).toBe("id-1");
    now = 1_899;
    expect(identityOf(store.open(request("t", "one")))).toBe("id-1");
    now = 2_899;
    expect(store.size).toBe(0);
    for (const id of ["one", "two", "three"]) store.open(request("t", id)).setActiveIdentity("id-1");
    store.open(request("t", "one"));
    store.open(request("t", "four"));
    expect(store.size).toBe(3);
    expect(identityOf(store.open(request("t", "one")))).toBe("id-1");
  });

  it("deletes a context only for its own tenant", () => {
    const store = create();
    store.open(request("a", "one")).setActiveIdentity("id-1");
    store.delete({ tenant: "b", contextId: "one" });
    expect(identityOf(store.open(request("a", "one")))).toBe("id-1");
    store.delete({ tenant: "a", contextId: "one" });
    expect(identityOf(store.open(request("a", "one")))).toBeNull();
  });

  it("never mixes contexts, however requests interleave", async () => {
    const step = fc.record({
      session: fc.integer({ min: 0, max: 3 }),
      identity: fc.integer({ min: 0, max: 7 }),
      turns: fc.integer({ min: 0, max: 4 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const store = createIdentityStore({ configuration });
        const lastOf = new Map<number, number>();
        await Promise.all(
          steps.map(async ({ session, identity, turns }) => {
            const context = store.open(request(`tenant-${session}`, `session-${session}`));
            for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
            context.setActiveIdentity(`id-${identity}`);
            lastOf.set(session, identity);
            for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
            expect(context.toCallExtras(ads)).toEqual({ headers: { "X-Account": `secret-${lastOf.get(session)}` } });
          }),
        );
      }),
    );
  });

  it("never sends the values of one tenant with a call of another, however tokens alternate", async () => {
    const step = fc.record({ tenant: fc.integer({ min: 0, max: 2 }), sets: fc.boolean(), turns: fc.integer({ min: 0, max: 3 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const store = createIdentityStore({ configuration });
        await Promise.all(
          steps.map(async ({ tenant, sets, turns }) => {
            for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
            const context = store.open(request(`tenant-${tenant}`, "shared"));
            if (sets) context.setActiveIdentity(`id-${tenant}`);
            for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
            const { headers } = context.toCallExtras(ads);
            expect([undefined, `secret-${tenant}`]).toContain(headers?.["X-Account"]);
          }),
        );
      }),
    );
  });
});

describe("the identity configuration", () => {
  it("is parsed unchanged", () => {
    expect(identityConfigurationSchema.parse(configuration)).toEqual(configuration);
  });

  it.each([
    [{ identities: { choices: { a: { secret: "x" } } } }, ["identities", "choices", "a"]],
    [{ regions: { choices: {}, rides: [{ as: "header", name: "Bad Name", servers: ["s"] }] } }, ["regions", "rides", 0, "name"]],
    [{ regions: { choices: {}, rides: [{ as: "header", name: "X", servers: [] }] } }, ["regions", "rides", 0, "servers"]],
    [{ identities: { choices: { a: { value: "x\r\nY: z" } } } }, ["identities", "choices", "a", "value"]],
    [{ identityRequired: ["tool"] }, ["identityRequired", 0]],
    [{ profiles: { choices: { p: { identities: ["nobody"] } } } }, ["profiles", "choices", "p", "identities"]],
  ])("refuses %j and names the path", (value, path) => {
    expect(identityConfigurationSchema.safeParse(value).error?.issues.map((issue) => issue.path)).toEqual([path]);
  });
});
