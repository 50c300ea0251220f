import type { TableDownload } from "../../../data/conversation-data.ts";

export interface DownloadOptions {
  readonly isAttachment: boolean;
  /** Of something that never changes. */
  readonly etag?: string;
}

/**
 * Streamed: it is never in memory as a whole because of us. The first piece is there before anything is said, so that what cannot be had is told as that.
 * A browser that is led to it neither runs nor shows it as anything else than it is.
 */
export async function toDownload(request: Request, download: TableDownload, { isAttachment, etag }: DownloadOptions): Promise<Response> {
  const { fileName, contentType, bytes } = download;
  const pieces = download.stream()[Symbol.asyncIterator]();
  const first = await pieces.next();
  const headers = new Headers({
    "content-type": contentType,
    "cache-control": etag === undefined ? "no-store" : immutable,
    ...(etag === undefined ? {} : { etag }),
    // In pieces from the first on: what fails before the end breaks the connection, and never looks like the end.
    ...(bytes === null ? { "transfer-encoding": "chunked" } : { "content-length": String(bytes) }),
    ...(isAttachment ? { "content-disposition": `attachment; filename="${fileName.replaceAll(/[^\w.-]/g, "_")}"` } : {}),
  });
  if (request.method !== "HEAD") return new Response(toStream(first, pieces), { headers });
  await pieces.return?.(); // a body of which nobody reads anything would never end
  return new Response(null, { headers });
}

function toStream(first: IteratorResult<Uint8Array>, pieces: AsyncIterator<Uint8Array>): ReadableStream<Uint8Array> {
  let next: IteratorResult<Uint8Array> | null = first;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = next ?? (await pieces.next());
        next = null;
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await pieces.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}

/** Only for who asked, but for ever: the name is the hash. */
export const immutable = "private, max-age=31536000, immutable";

/** Whether the client has it already. */
export function isKnown(request: Request, etag: string): boolean {
  return (request.headers.get("if-none-match") ?? "")
    .split(",")
    .some((one) => one.trim().replace(/^W\//, "") === etag || one.trim() === "*");
}

export function notModified(etag: string): Response {
  return new Response(null, { status: 304, headers: { etag, "cache-control": immutable } });
}
