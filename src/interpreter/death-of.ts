import type { Death, Lease } from "../sandbox/contract.ts";

/** How the sandbox died, if that is known within a moment. */
export async function deathOf({ died }: Lease): Promise<Death | null> {
  const { promise, resolve } = Promise.withResolvers<null>();
  const timer = setTimeout(() => resolve(null), 2_000);
  return await Promise.race([died, promise]).finally(() => clearTimeout(timer));
}
