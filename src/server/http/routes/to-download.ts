import type { TableDownload } from "../../../data/conversation-data.ts";

export interface DownloadOptions {
  readonly isAttachment: boolean;
  /** For content that never changes. */
  readonly etag?: string;
}

/**
 * A response that streams a file without holding all of it in memory. Waits for the first chunk, so that a file that cannot be read is reported as an error
 * instead of as a broken download.
 */
export async function toDownload(request: Request, download: TableDownload, { isAttachment, etag }: DownloadOptions): Promise<Response> {
  const { fileName, contentType, bytes } = download;
  const chunks = download.stream()[Symbol.asyncIterator]();
  const first = await chunks.next();
  const headers = new Headers({
    "content-type": contentType,
    "cache-control": etag === undefined ? "no-store" : immutable,
    ...(etag === undefined ? {} : { etag }),
    // Chunked from the start, so that an error later breaks the connection instead of looking like the end of the file.
    ...(bytes === null ? { "transfer-encoding": "chunked" } : { "content-length": String(bytes) }),
    ...(isAttachment ? { "content-disposition": `attachment; filename="${fileName.replaceAll(/[^\w.-]/g, "_")}"` } : {}),
  });
  if (request.method !== "HEAD") return new Response(toStream(first, chunks), { headers });
  await chunks.return?.(); // the body of a HEAD response is never read
  return new Response(null, { headers });
}

function toStream(first: IteratorResult<Uint8Array>, chunks: AsyncIterator<Uint8Array>): ReadableStream<Uint8Array> {
  let next: IteratorResult<Uint8Array> | null = first;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = next ?? (await chunks.next());
        next = null;
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await chunks.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}

/** The cache policy of files that are named by their hash: only the client's own cache, without expiry. */
export const immutable = "private, max-age=31536000, immutable";

export function matchesEtag(request: Request, etag: string): boolean {
  return (request.headers.get("if-none-match") ?? "")
    .split(",")
    .some((candidate) => candidate.trim().replace(/^W\//, "") === etag || candidate.trim() === "*");
}

export function notModified(etag: string): Response {
  return new Response(null, { status: 304, headers: { etag, "cache-control": immutable } });
}
