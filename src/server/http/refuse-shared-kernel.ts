import type { Configuration } from "../../config/configuration-schema.ts";
import { UsageError } from "../../errors/sluice-error.ts";
import type { DriverName } from "../../sandbox/contract.ts";
import { configuredTenants } from "./authenticator.ts";

interface SharedKernelOptions {
  readonly driver: DriverName;
  readonly configuration: Configuration;
  /** Without tokens, all clients are one tenant. */
  readonly isOpen: boolean;
}

/**
 * Throws TENANTS_SHARE_KERNEL if cells of several tenants would run on one kernel, unless the configuration accepts that. Under bubblewrap, tenants can
 * leave signals for each other (see SECURITY.md), and a bug of the kernel is a way from one to another.
 */
export function refuseSharedKernel({ driver, configuration, isOpen }: SharedKernelOptions): void {
  const tenants = isOpen ? [] : configuredTenants(configuration.auth.tokens);
  if (driver !== "bubblewrap" || tenants.length < 2 || configuration.server.allowTenantsToShareKernel) return;
  const chosen = configuration.sandbox.driver === "auto" ? ", which `auto` chose on this machine," : "";
  throw new UsageError({
    code: "TENANTS_SHARE_KERNEL",
    message: `This server has ${tenants.length} tenants, and under bubblewrap${chosen} their cells would share the kernel of this machine. Cells of one tenant could then signal to those of another, and a bug of the kernel would open the way to its data.`,
  });
}
