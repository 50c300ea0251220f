import { isIP } from "node:net";
import os from "node:os";
import { HttpFailure } from "./http-failure.ts";

export interface OriginRules {
  /** Allowed host names besides localhost, this machine's name and IP addresses. */
  readonly allowedHosts: readonly string[];
  /** The address that clients use. Its host and origin are allowed, also behind a proxy that does not pass on `Host`. */
  readonly publicUrl?: string | null;
}

/**
 * Refuses requests from foreign web pages. A page that rebinds its DNS name to this server has that name in `Host`; one that sends a cross-site request has its
 * own address in `Origin`. An IP address in `Host` is safe, because it needs no DNS.
 */
export function checkOrigin(request: Request, { allowedHosts, publicUrl = null }: OriginRules): void {
  const host = request.headers.get("host") ?? "";
  const name = toHostName(host);
  const allowedNames = ["localhost", os.hostname(), ...allowedHosts, ...(publicUrl === null ? [] : [new URL(publicUrl).hostname])];
  if (name === null || !(isIP(name) !== 0 || allowedNames.some((allowed) => allowed.toLowerCase() === name)))
    throw new HttpFailure({
      code: "HOST_NOT_ALLOWED",
      message: `The host ${JSON.stringify(host.slice(0, 200))} is not allowed.`,
      hint: "Use the address that the server printed, or add the host to server.publicUrl or server.allowedHosts in the configuration.",
    });
  const origin = request.headers.get("origin");
  if (origin !== null && origin !== publicUrl && URL.parse(origin)?.host !== host.toLowerCase())
    throw new HttpFailure({
      code: "ORIGIN_NOT_ALLOWED",
      message: `A page of ${JSON.stringify(origin.slice(0, 200))} sent this request. Only pages of this server may.`,
    });
}

/** Requires proof that a request with a cookie comes from our own page, unless it only reads. Every browser sends one of these headers. */
export function checkOwnPage(request: Request): void {
  if (request.method === "GET" || request.method === "HEAD") return;
  if (request.headers.get("origin") !== null || request.headers.get("sec-fetch-site") === "same-origin") return;
  throw new HttpFailure({ code: "ORIGIN_MISSING", message: "A request with a cookie must have an Origin or Sec-Fetch-Site header." });
}

function toHostName(host: string): string | null {
  const url = URL.parse(`http://${host}/`);
  if (url === null || host === "" || /[/@?#\\]/.test(host)) return null;
  return url.hostname.replace(/^\[|\]$/g, "").toLowerCase();
}
