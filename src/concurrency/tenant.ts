import { AsyncLocalStorage } from "node:async_hooks";

const tenants = new AsyncLocalStorage<string>();

/** Runs work for a tenant. What the work starts counts as the tenant's too, also what continues in the background after it has returned. */
export function runAsTenant<Value>(tenant: string, work: () => Value): Value {
  return tenants.run(tenant, work);
}

/** The tenant whose work is running; "" outside a server. Limiters share their places by it, so that no function has to pass it on. */
export function currentTenant(): string {
  return tenants.getStore() ?? "";
}
