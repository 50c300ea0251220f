import { configuredTenants } from "./create-authenticator.ts";
import type { ServerParts } from "./open-parts.ts";
import { prune } from "./prune.ts";

const EVERY_MS = 60 * 60_000;

/** At once, and then every hour. What fails is tried again the next time. */
export function keepPruned({
  history,
  storesOf,
  configured,
  conversations,
  log,
}: Pick<ServerParts, "history" | "storesOf" | "configured" | "conversations" | "log">): Disposable {
  const { auth, server, artifacts } = configured.configuration;
  const { directory } = artifacts;
  const { retention } = server;
  const tenants = configuredTenants(auth.tokens);
  const run = async (): Promise<void> => {
    try {
      const all = await prune({
        directory,
        history,
        storesOf,
        retention,
        tenants,
        isInUse: conversations.isInUse,
        onRemoved: conversations.refresh,
      });
      for (const { tenant, expired, overQuota, orphans, bytesBefore, bytesAfter } of all)
        if (expired + overQuota + orphans > 0) log.info("pruned", { tenant, expired, overQuota, orphans, bytesBefore, bytesAfter });
    } catch (error) {
      log.error("prune_failed", { reason: (error as Error).message });
    }
  };
  void run();
  const timer = setInterval(() => void run(), EVERY_MS).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
