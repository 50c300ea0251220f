import type { ServerParts } from "../server-parts.ts";

/** The server as clients reach it: as it was told, else as this one did. What a proxy says in headers is not asked: anybody can say it. */
export function originOf({ publicUrl }: Pick<ServerParts, "publicUrl">, request: Request): string {
  return publicUrl ?? `http://${request.headers.get("host")}`; // its Host was checked
}
