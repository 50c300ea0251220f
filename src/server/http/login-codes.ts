import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { z } from "zod";

const loginCodeSchema = z.strictObject({ tenant: z.string(), isOperator: z.boolean(), expiresAt: z.string() });

/** What a login code allows, and until when. */
export type LoginCode = z.infer<typeof loginCodeSchema>;

/** Unused login codes per tenant. A further one replaces the oldest. */
const MAX_CODES = 100;
const CODE_LIFETIME_MS = 24 * 60 * 60_000;

export interface LoginCodesOptions {
  /** The data directory of the server. */
  readonly directory: string;
  readonly now?: (() => Date) | undefined;
}

/**
 * The codes of one-time login links: one file each in the data directory, named after the hash of the code. `sluice login-link` adds one while a server runs.
 * Only the owner of the directory can write there, and a copy of the directory opens no session.
 */
export class LoginCodes {
  readonly #directory: string;
  readonly #now: () => Date;

  constructor({ directory, now = () => new Date() }: LoginCodesOptions) {
    this.#directory = path.join(directory, "login-codes");
    this.#now = now;
  }

  create({ tenant, isOperator }: Pick<LoginCode, "tenant" | "isOperator">): { readonly code: string; readonly expiresAt: string } {
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
    this.#makeRoom(tenant);
    const code = randomBytes(32).toString("base64url");
    const expiresAt = new Date(this.#now().getTime() + CODE_LIFETIME_MS).toISOString();
    writeFileSync(this.#fileOf(code), JSON.stringify({ tenant, isOperator, expiresAt }), { mode: 0o600, flag: "wx" });
    return { code, expiresAt };
  }

  /** Null if the code is unknown, used or expired. */
  find(code: string): LoginCode | null {
    return this.#read(this.#fileOf(code));
  }

  /** Like `find`, and uses the code up. Of several callers only one gets it. */
  take(code: string): LoginCode | null {
    const found = this.find(code);
    try {
      unlinkSync(this.#fileOf(code));
      return found;
    } catch {
      return null;
    }
  }

  #fileOf(code: string): string {
    return path.join(this.#directory, `${createHash("sha256").update(code).digest("hex")}.json`);
  }

  #read(file: string): LoginCode | null {
    try {
      const found = loginCodeSchema.parse(JSON.parse(readFileSync(file, "utf8")));
      return found.expiresAt > this.#now().toISOString() ? found : null;
    } catch {
      return null;
    }
  }

  /** Removes codes that have expired, and the oldest of a tenant that has too many. */
  #makeRoom(tenant: string): void {
    const files = readdirSync(this.#directory).map((name) => path.join(this.#directory, name));
    const codes = files.map((file) => ({ file, code: this.#read(file) }));
    const ofTenant = codes.filter(({ code }) => code?.tenant === tenant);
    ofTenant.sort((a, b) => (a.code!.expiresAt < b.code!.expiresAt ? -1 : 1));
    const surplus = ofTenant.slice(0, Math.max(0, ofTenant.length + 1 - MAX_CODES));
    for (const { file } of [...codes.filter(({ code }) => code === null), ...surplus]) rmSync(file, { force: true });
  }
}
