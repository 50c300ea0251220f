import type { HostileTenant } from "./hostile-tenant.ts";
import type { AttackedServer } from "./attacked-server.ts";

/** One attack of the hostile tenant. */
export interface AttackCase {
  readonly name: string;
  /** What the hostile tenant does, in a few words. */
  readonly what: string;
  /** Attacks and checks what the attacker got. Throws an AssertionError when a promise of Sluice is broken. */
  run(options: AttackOptions): Promise<void>;
}

interface AttackOptions {
  readonly hostile: HostileTenant;
  readonly server: AttackedServer;
  /** Of everything that is generated. */
  readonly seed: number;
  /** Fewer repetitions, for `npm test`. */
  readonly isShort: boolean;
}
