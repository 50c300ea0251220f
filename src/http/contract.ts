/** Who is asking. Everything that is found, kept or removed for a request is of its tenant. */
export interface Principal {
  readonly tenant: string;
  /** May see what the sandboxes of all tenants do. */
  readonly isOperator: boolean;
  /** Of the bearer token; null for a browser. */
  readonly tokenHash: string | null;
  readonly via: "bearer" | "cookie" | "none";
}

/** Who everybody is where no tenants are told apart. */
export const localTenant = "local";

/** A token that is let in, by its hash. */
export interface AcceptedToken {
  readonly tenant: string;
  readonly sha256: string;
  readonly isOperator: boolean;
}
