import path from "node:path";
import { createHash } from "node:crypto";
import { readFile, realpath } from "node:fs/promises";
import { lookUpError } from "../../errors/error-table.ts";
import type { Principal } from "./create-authenticator.ts";
import { HttpFailure } from "./http-failure.ts";
import { immutable, isKnown } from "./routes/to-download.ts";

/** What a page that was not built says instead. */
export interface PageFacts {
  readonly facts: readonly (readonly [string, string])[];
  /** For a desktop client. */
  readonly snippet: string;
}

export interface PageOptions {
  /** Where the built page is: `index.html` and `assets/`. */
  readonly directory: string;
  /** What is shown where it is not built. */
  readonly describe: () => Promise<PageFacts>;
}

/** No script and no style but our own files, nothing from elsewhere, and nobody may frame it. What charts set through the DOM needs no leave. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
};

/** Everything that is no route: the page for every address of it, and the files that it is made of. */
export function createPage({ directory, describe }: PageOptions): (request: Request, principal: Principal | null) => Promise<Response> {
  return async (request, principal) => {
    const { pathname } = new URL(request.url);
    if (request.method !== "GET" && request.method !== "HEAD") throw notFound(pathname);
    if (/^\/(?:api|data|artifacts|mcp)(?:\/|$)/.test(pathname)) throw notFound(pathname);
    if (principal === null) return noticePage("login");
    const isFile = path.posix.extname(pathname) !== "" && pathname !== "/index.html";
    const name = isFile ? pathname : "/index.html";
    const file = await readBest(request, directory, name);
    if (file !== null) return serveFile(request, name, file);
    if (isFile) throw notFound(pathname);
    return await describePage(describe);
  };
}

interface PageFile {
  readonly bytes: Buffer<ArrayBuffer>;
  /** How it is compressed; null for as it is. */
  readonly encoding: string | null;
}

/** The smallest form that the client takes and the build made. */
async function readBest(request: Request, directory: string, pathname: string): Promise<PageFile | null> {
  for (const { encoding, ending } of acceptedEncodings(request)) {
    const bytes = await readInside(directory, `${pathname}${ending}`);
    if (bytes !== null) return { bytes, encoding };
  }
  const bytes = await readInside(directory, pathname);
  return bytes === null ? null : { bytes, encoding: null };
}

function serveFile(request: Request, pathname: string, { bytes, encoding }: PageFile): Response {
  const etag = `"${createHash("sha256").update(bytes).digest("hex").slice(0, 32)}"`;
  const isNamedByContent = pathname.startsWith("/assets/");
  const headers = {
    "content-type": types[path.posix.extname(pathname)] ?? "application/octet-stream",
    "cache-control": isNamedByContent ? immutable : "no-cache",
    etag,
    vary: "accept-encoding",
    ...(encoding === null ? {} : { "content-encoding": encoding }),
    "content-security-policy": policy,
  };
  // A browser takes the headers of a 304 for those of what it has: the policy must be in them too.
  return isKnown(request, etag) ? new Response(null, { status: 304, headers }) : new Response(bytes, { headers });
}

/** Null for what is not there, and for what is not inside. */
async function readInside(directory: string, pathname: string): Promise<Buffer<ArrayBuffer> | null> {
  try {
    const root = await realpath(directory);
    const file = await realpath(path.join(root, decodeURIComponent(pathname)));
    if (!file.startsWith(`${root}${path.sep}`)) return null;
    return await readFile(file);
  } catch {
    return null;
  }
}

async function describePage(describe: PageOptions["describe"]): Promise<Response> {
  const { facts, snippet } = await describe();
  const list = facts.map(([name, value]) => `<dt><strong>${escapeHtml(name)}</strong></dt><dd>${escapeHtml(value)}</dd>`).join("\n");
  return htmlPage({
    title: "Sluice is running",
    body: `<dl>${list}</dl>
<p>The page was not built; <code>npm run setup</code> builds it. Programs can talk to the server now: <a href="/api/openapi.json">what it understands</a>.</p>
<p>For a desktop client, into its configuration:</p>
<pre>${escapeHtml(snippet)}</pre>`,
  });
}

function notFound(pathname: string): HttpFailure {
  return new HttpFailure({ code: "NOT_FOUND", message: `There is nothing at ${pathname.slice(0, 200)}.` });
}

/** What the page's files are compressed as when it is built, the smaller first, and how such a file ends. */
const encodings = [
  { encoding: "br", ending: ".br" },
  { encoding: "gzip", ending: ".gz" },
] as const;

/** Those that the client takes. Browsers take `br` only where nobody in between could stumble over it: over TLS and on loopback. */
function acceptedEncodings(request: Request): readonly { readonly encoding: string; readonly ending: string }[] {
  const offers = (request.headers.get("accept-encoding") ?? "")
    .toLowerCase()
    .split(",")
    .map((offer) => offer.split(";").map((part) => part.trim()));
  const refuses = (parameters: readonly string[]): boolean => parameters.some((one) => /^q=0(?:\.0*)?$/.test(one));
  return encodings.filter(({ encoding }) => {
    const [, ...parameters] = offers.find(([name]) => name === encoding) ?? offers.find(([name]) => name === "*") ?? ["", "q=0"];
    return !refuses(parameters);
  });
}

/** Small pages without a script, for when there is no page to show: nobody is logged in, a link was used, or the page was not built. */
const notices = {
  login: {
    code: "UNAUTHORIZED",
    title: "Log in to Sluice",
    lines: [
      "This browser is not logged in.",
      "Open the one-time link that <code>sluice serve</code> printed when it started.",
      "A program with the bearer token can make another: <code>POST /api/login-links</code>.",
    ],
  },
  linkUsed: {
    code: "LOGIN_LINK_USED",
    title: "This link does not work any more",
    lines: [
      "A link works once, within a day.",
      'If this browser is logged in already, go to <a href="/">the page</a>.',
      "Otherwise start <code>sluice serve</code> again, or make another with the bearer token: <code>POST /api/login-links</code>.",
    ],
  },
} as const;

export function noticePage(name: keyof typeof notices): Response {
  const { code, title, lines } = notices[name];
  return htmlPage({ status: lookUpError(code).status, title, body: lines.map((line) => `<p>${line}</p>`).join("\n") });
}

/** `body` is HTML of our own; what is not goes through `escapeHtml`. */
function htmlPage({ status = 200, title, body }: { status?: number; title: string; body: string }): Response {
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 42rem; margin: 10vh auto; padding: 0 1.25rem }
code, pre { font-family: ui-monospace, monospace; font-size: 0.9em }
pre { padding: 0.75rem 1rem; border: 1px solid; border-radius: 0.5rem; overflow-x: auto }
</style>
<h1>${escapeHtml(title)}</h1>
${body}
</html>
`;
  return new Response(html, {
    status,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "content-security-policy":
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    },
  });
}

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
