import { SandboxLostError } from "../errors/sluice-error.ts";

/** A sandbox that breaks the protocol is ended: what it says next cannot be trusted. */
export function outOfPlace(what: string): SandboxLostError {
  return new SandboxLostError({
    code: "SANDBOX_PROTOCOL",
    message: `it sent ${what}`,
    hint: "The sandbox was ended. Code that writes to the worker's own descriptors causes this.",
  });
}
