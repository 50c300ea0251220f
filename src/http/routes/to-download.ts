import { Readable } from "node:stream";

export interface Download {
  readonly fileName: string;
  readonly contentType: string;
  /** Null when it is not known before the end. */
  readonly bytes: number | null;
  stream(): AsyncIterable<Uint8Array>;
}

export interface DownloadOptions {
  readonly isAttachment: boolean;
  /** Of something that never changes. */
  readonly etag?: string;
}

/** Streamed: it is never in memory as a whole because of us. A browser that is led to it neither runs nor shows it as anything else than it is. */
export function toDownload(download: Download, { isAttachment, etag }: DownloadOptions): Response {
  const { fileName, contentType, bytes } = download;
  const headers = new Headers({
    "content-type": contentType,
    "cache-control": etag === undefined ? "no-store" : immutable,
    ...(etag === undefined ? {} : { etag }),
    ...(bytes === null ? {} : { "content-length": String(bytes) }),
    ...(isAttachment ? { "content-disposition": `attachment; filename="${fileName.replaceAll(/[^\w.-]/g, "_")}"` } : {}),
  });
  return new Response(Readable.toWeb(Readable.from(download.stream())), { headers });
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
