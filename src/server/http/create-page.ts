import { createHash } from "node:crypto";
import { readFile, realpath } from "node:fs/promises";
import path from "node:path";
import { lookUpError } from "../../errors/error-table.ts";
import type { Principal } from "./authenticator.ts";
import { HttpFailure } from "./http-failure.ts";
import { immutable, matchesEtag } from "./routes/to-download.ts";

/** Shown instead of the page when it was not built. */
export interface ServerDescription {
  readonly facts: readonly (readonly [name: string, value: string])[];
  /** Configuration of a desktop client. */
  readonly snippet: string;
}

export interface PageOptions {
  /** The built page: `index.html` and `assets/`. */
  readonly directory: string;
  readonly server: ServerDescription;
}

/** Scripts and styles come from our own files only, and no site may frame the page. Styles that charts set through the DOM are exempt from the policy. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

const contentTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
};

/** Serves everything that is not a route: the files of the page, and `index.html` for all its addresses. */
export function createPage({ directory, server }: PageOptions): (request: Request, principal: Principal | null) => Promise<Response> {
  return async (request, principal) => {
    const { pathname } = new URL(request.url);
    if (request.method !== "GET" && request.method !== "HEAD") throw notFound(pathname);
    if (/^\/(?:api|data|artifacts|mcp)(?:\/|$)/.test(pathname)) throw notFound(pathname);
    if (principal === null) return noticePage("login");
    const isFile = path.posix.extname(pathname) !== "" && pathname !== "/index.html";
    const name = isFile ? pathname : "/index.html";
    const file = await readSmallest(request, directory, name);
    if (file !== null) return serveFile(request, name, file);
    if (isFile) throw notFound(pathname);
    return serverPage(server);
  };
}

interface PageFile {
  readonly bytes: Buffer<ArrayBuffer>;
  /** The content encoding; null for uncompressed. */
  readonly encoding: string | null;
}

/** The file in the smallest encoding that the client accepts and the build has written. */
async function readSmallest(request: Request, directory: string, pathname: string): Promise<PageFile | null> {
  for (const { encoding, ending } of [...acceptedEncodings(request), { encoding: null, ending: "" }]) {
    const bytes = await readInside(directory, `${pathname}${ending}`);
    if (bytes !== null) return { bytes, encoding };
  }
  return null;
}

function serveFile(request: Request, pathname: string, { bytes, encoding }: PageFile): Response {
  const etag = `"${createHash("sha256").update(bytes).digest("hex").slice(0, 32)}"`;
  const isNamedByHash = pathname.startsWith("/assets/");
  const headers = {
    "content-type": contentTypes[path.posix.extname(pathname)] ?? "application/octet-stream",
    "cache-control": isNamedByHash ? immutable : "no-cache",
    etag,
    vary: "accept-encoding",
    ...(encoding === null ? {} : { "content-encoding": encoding }),
    "content-security-policy": contentSecurityPolicy,
  };
  // A browser replaces the headers of its cached copy with those of a 304, so the policy must be repeated.
  return matchesEtag(request, etag) ? new Response(null, { status: 304, headers }) : new Response(bytes, { headers });
}

/** The file; null if it does not exist or is outside of the directory. */
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

function serverPage({ facts, snippet }: ServerDescription): Response {
  const list = facts.map(([name, value]) => `<dt><strong>${escapeHtml(name)}</strong></dt><dd>${escapeHtml(value)}</dd>`).join("\n");
  return htmlPage({
    title: "Sluice is running",
    body: `<dl>${list}</dl>
<p>The chat page is not built. Run <code>npm run setup</code> to build it. Programs can already use the API: see <a href="/api/openapi.json">its description</a>.</p>
<p>To connect a desktop client, add this to its configuration:</p>
<pre>${escapeHtml(snippet)}</pre>`,
  });
}

function notFound(pathname: string): HttpFailure {
  return new HttpFailure({ code: "NOT_FOUND", message: `Nothing found at ${pathname.slice(0, 200)}.` });
}

/** The compressed files that the build writes beside each file, smallest first. */
const encodings = [
  { encoding: "br", ending: ".br" },
  { encoding: "gzip", ending: ".gz" },
] as const;

/** The encodings that the client accepts. Browsers accept `br` only over TLS and on loopback. */
function acceptedEncodings(request: Request): (typeof encodings)[number][] {
  const offers = (request.headers.get("accept-encoding") ?? "")
    .toLowerCase()
    .split(",")
    .map((offer) => offer.split(";").map((part) => part.trim()));
  return encodings.filter(({ encoding }) => {
    const [, ...parameters] = offers.find(([name]) => name === encoding) ?? offers.find(([name]) => name === "*") ?? ["", "q=0"];
    return !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter));
  });
}

/** Plain HTML pages for browsers that are not logged in. */
const notices = {
  login: {
    code: "UNAUTHORIZED",
    title: "Log in to Sluice",
    lines: [
      "This browser is not logged in.",
      "Open the one-time link that <code>sluice serve</code> printed in its terminal, or create one on that machine: <code>sluice login-link</code>.",
      "A program with the bearer token can create one, too: <code>POST /api/login-links</code>.",
    ],
  },
  linkUsed: {
    code: "LOGIN_LINK_USED",
    title: "This link is no longer valid",
    lines: [
      "A link works once and expires after a day.",
      'If this browser is already logged in, go to <a href="/">the page</a>.',
      "Otherwise create another link on the machine of the server: <code>sluice login-link</code>.",
    ],
  },
} as const;

export function noticePage(name: keyof typeof notices): Response {
  const { code, title, lines } = notices[name];
  return htmlPage({ status: lookUpError(code).status, title, body: lines.map((line) => `<p>${line}</p>`).join("\n") });
}

/** Asks before this browser is logged in: the link may come from another site, and then from someone who wants to receive what the user enters. */
export function loginPage({ code, tenant, current }: { code: string; tenant: string; current: string | null }): Response {
  const name = `<strong>${escapeHtml(tenant)}</strong>`;
  const replaced = `<p>This browser is now logged in as <strong>${escapeHtml(current ?? "")}</strong>. Logging in ends that.</p>\n`;
  return htmlPage({
    title: "Log in to Sluice",
    body: `<p>This link logs this browser in as the tenant ${name}: everyone with access to that tenant sees what you do here.</p>
${current === null ? "" : replaced}<p>If you did not ask for this link, close this page.</p>
<form method="post" action="/login">
<input type="hidden" name="code" value="${escapeHtml(code)}">
<button>Log in as ${escapeHtml(tenant)}</button>
</form>`,
    formAction: "'self'",
    // Without a referrer, the form would send "Origin: null". This policy never sends the code.
    headers: { "referrer-policy": "strict-origin" },
  });
}

interface HtmlPageOptions {
  readonly status?: number;
  readonly title: string;
  readonly body: string;
  readonly formAction?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** `body` is HTML; text from elsewhere in it must be escaped by the caller. */
function htmlPage({ status = 200, title, body, formAction = "'none'", headers = {} }: HtmlPageOptions): Response {
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
button { font: inherit; padding: 0.5rem 1rem; cursor: pointer }
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
      "content-security-policy": `default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action ${formAction}; frame-ancestors 'none'`,
      ...headers,
    },
  });
}

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
