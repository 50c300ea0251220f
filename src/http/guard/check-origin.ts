import os from "node:os";
import { isIP } from "node:net";
import { HttpFailure } from "../http-failure.ts";

export interface OriginRules {
  /** Names besides localhost, this machine's own and addresses. */
  readonly allowedHosts: readonly string[];
  /** What clients reach the server by: its host is allowed, and its pages are the server's own, also behind a proxy that does not pass `Host` on. */
  readonly publicUrl?: string | null;
}

/**
 * A page of somebody else's that made its name point here (DNS rebinding) has that name in `Host`; one that sends a request here has itself in `Origin`.
 * Both are refused, before anything is looked at. An address in `Host` is fine: no name was bent for it.
 */
export function checkOrigin(request: Request, { allowedHosts, publicUrl = null }: OriginRules): void {
  const host = request.headers.get("host") ?? "";
  const name = hostName(host);
  const names = ["localhost", os.hostname(), ...allowedHosts, ...(publicUrl === null ? [] : [new URL(publicUrl).hostname])];
  if (name === null || !(isIP(name) !== 0 || names.some((one) => one.toLowerCase() === name)))
    throw new HttpFailure({
      status: 421,
      code: "HOST_NOT_ALLOWED",
      message: `The request was for the host ${JSON.stringify(host.slice(0, 200))}, which this server does not go by.`,
      hint: "Use the address that it printed, or name the host in server.publicUrl or server.allowedHosts of the configuration.",
    });
  const origin = request.headers.get("origin");
  if (origin !== null && origin !== publicUrl && URL.parse(origin)?.host !== host.toLowerCase())
    throw new HttpFailure({
      status: 403,
      code: "ORIGIN_NOT_ALLOWED",
      message: `A page of ${JSON.stringify(origin.slice(0, 200))} sent this request; only this server's own pages may.`,
    });
}

/** What a cookie rides on must come from our own page: every browser says so with requests that change something. */
export function checkOwnPage(request: Request): void {
  if (request.method === "GET" || request.method === "HEAD") return;
  if (request.headers.get("origin") !== null || request.headers.get("sec-fetch-site") === "same-origin") return;
  throw new HttpFailure({
    status: 403,
    code: "ORIGIN_MISSING",
    message: "A request with a cookie did not say which page it is from.",
    hint: "Programs use a bearer token.",
  });
}

function hostName(host: string): string | null {
  const url = URL.parse(`http://${host}/`);
  if (url === null || host === "" || /[/@?#\\]/.test(host)) return null;
  return url.hostname.replace(/^\[|\]$/g, "").toLowerCase();
}
