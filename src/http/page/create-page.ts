import { createHash } from "node:crypto";
import { readFile, realpath } from "node:fs/promises";
import path from "node:path";
import type { Principal } from "../contract.ts";
import { HttpFailure } from "../http-failure.ts";
import { immutable, isKnown } from "../routes/to-download.ts";
import { acceptedEncodings } from "./accepted-encodings.ts";
import { escapeHtml, htmlPage, noticePage } from "./notice-page.ts";

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
  return new HttpFailure({
    status: 404,
    code: "NOT_FOUND",
    message: `There is nothing at ${pathname.slice(0, 200)}.`,
    hint: "/api/openapi.json lists what there is.",
  });
}
