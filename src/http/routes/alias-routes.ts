import { Readable } from "node:stream";
import { z } from "zod";
import type { DataAnswer } from "../../data/contract.ts";
import { openAliasDownload } from "../../data/downloads/open-table-download.ts";
import { tableFileEndings } from "../../protocol/data-files.ts";
import { aliasListSchema, aliasSchema, tableRowsSchema, tableSchemaSchema } from "../../protocol/http-tables.ts";
import { httpIdSchema } from "../../protocol/http-error.ts";
import type { LiveConversation } from "../conversations/create-conversations.ts";
import { toAliases } from "../conversations/to-aliases.ts";
import { HttpFailure } from "../http-failure.ts";
import type { ServerParts } from "../server-parts.ts";
import { noConversation } from "./conversation-routes.ts";
import { defineRoute, json, jsonText, type Route, type RouteRequest } from "./define-route.ts";
import { check, tooLarge } from "./read-body.ts";
import { toDownload } from "./to-download.ts";

/** Data of a conversation: files that are given to it, and every alias as a table to look through and to take away. */
export function aliasRoutes(parts: ServerParts): Route[] {
  const { history } = parts;

  /** A conversation that is there. */
  async function within(request: RouteRequest, work: (live: LiveConversation) => Promise<Response>): Promise<Response> {
    const { tenant } = request.principal;
    const id = request.parameters["conversationId"]!;
    if (history.conversations.get(tenant, id) === null) noConversation(id);
    return await parts.conversations.use({ tenant, id }, work);
  }

  return [
    defineRoute({
      method: "post",
      path: "/api/conversations/{conversationId}/files",
      operationId: "uploadFile",
      beginsWork: {},
      summary: `Give a data file (${tableFileEndings.join(", ")}) to a conversation, as an alias of it.`,
      tag: "conversations",
      query: z.object({ name: z.string().min(1).max(255) }),
      body: "bytes",
      answers: { 201: { description: "The alias.", schema: aliasSchema } },
      handle: async (request) => await upload(parts, request),
    }),
    defineRoute({
      method: "get",
      path: "/api/conversations/{conversationId}/aliases",
      operationId: "listAliases",
      summary: "Everything that a conversation holds by name.",
      tag: "conversations",
      answers: { 200: { description: "Aliases, oldest first.", schema: aliasListSchema } },
      handle: (request) => within(request, async (live) => json({ aliases: toAliases(live, history) })),
    }),
    defineRoute({
      method: "get",
      path: "/api/conversations/{conversationId}/aliases/{alias}/schema",
      operationId: "getAliasSchema",
      summary: "Columns of an alias with types, shares of nulls and ranges.",
      tag: "conversations",
      answers: { 200: { description: "The columns.", schema: tableSchemaSchema } },
      handle: (request) =>
        within(request, async ({ data }) => toAnswer(await data.schema(request.parameters["alias"]!, { signal: request.signal }))),
    }),
    defineRoute({
      method: "get",
      path: "/api/conversations/{conversationId}/aliases/{alias}/rows",
      operationId: "readAliasRows",
      summary: "One page of the rows of an alias, searched, filtered and sorted.",
      tag: "conversations",
      query: z.object({
        offset: z.coerce.number().int().nonnegative().optional(),
        limit: z.coerce.number().int().min(1).max(1000).optional(),
        search: z.string().max(500).optional(),
        filter: jsonList.optional(),
        sort: jsonList.optional(),
        columns: jsonList.optional(),
      }),
      answers: { 200: { description: "The page.", schema: tableRowsSchema } },
      handle: (request) =>
        within(request, async ({ data }) => {
          const input = { alias: request.parameters["alias"]!, ...request.query };
          return toAnswer(await data.page(input, { signal: request.signal }));
        }),
    }),
    ...(["csv", "parquet"] as const).map((as) =>
      defineRoute({
        method: "get",
        path: `/api/conversations/{conversationId}/tables/{alias}.${as}`,
        operationId: `downloadAlias${as === "csv" ? "Csv" : "Parquet"}`,
        summary: `An alias as ${as === "csv" ? "CSV, with formulas made harmless" : "Parquet"}.`,
        tag: "conversations",
        answers: { 200: { description: "The table.", contentType: as === "csv" ? "text/csv" : "application/vnd.apache.parquet" } },
        handle: (request) =>
          within(request, async ({ evidence }) => {
            const item = evidence.get(request.parameters["alias"]!);
            if (item === null) throw noAlias(request.parameters["alias"]!);
            const { openSession } = parts.configured.runtime;
            const download = await openAliasDownload({ item, as, openSession, signal: request.signal });
            return await toDownload(request.request, download, { isAttachment: true });
          }),
      }),
    ),
    defineRoute({
      method: "get",
      path: "/api/conversations/{conversationId}/tables/{alias}.json",
      operationId: "downloadAliasJson",
      summary: "An alias that is JSON, byte for byte as it came.",
      tag: "conversations",
      answers: { 200: { description: "The bytes.", contentType: "application/json" } },
      handle: (request) =>
        within(request, async ({ evidence }) => {
          const item = evidence.get(request.parameters["alias"]!);
          if (item === null) throw noAlias(request.parameters["alias"]!);
          if (item.format !== "json") failNoTable(item.alias);
          const download = {
            fileName: `${item.alias}.json`,
            contentType: "application/json",
            bytes: item.bytes,
            stream: () => once(item.read()),
          };
          return await toDownload(request.request, download, { isAttachment: true });
        }),
    }),
  ];
}

/** A list as JSON text in the query. */
const jsonList = z.string().transform((text, context): unknown[] => {
  try {
    const value: unknown = JSON.parse(text);
    if (Array.isArray(value)) return value;
  } catch {
    // told below
  }
  context.addIssue({ code: "custom", message: "must be a list, as JSON" });
  return z.NEVER;
});

async function upload(parts: ServerParts, { request, parameters, query, principal: { tenant }, signal }: RouteRequest): Promise<Response> {
  const { history, uploads, conversations } = parts;
  const { uploadBytes } = parts.configured.configuration.server;
  const id = check(httpIdSchema, parameters["conversationId"], "path") as string;
  const fileName = String(query["name"]);
  if (Number(request.headers.get("content-length") ?? 0) > uploadBytes) throw tooLarge(uploadBytes);
  const content = request.body === null ? Readable.from([]) : Readable.fromWeb(request.body);
  return await conversations.use({ tenant, id }, async (live) => {
    const wanted = AbortSignal.any([signal, live.removed]);
    const kept = await uploads.put({ tenant, fileName, content, signal: wanted });
    const at = new Date().toISOString();
    history.conversations.ensure({ tenant, id, title: kept.fileName, at });
    const { alias } = live.data.addUpload(kept);
    const { sha256, bytes, format } = kept;
    const record = JSON.stringify({ tenant, sha256, bytes, fileName: kept.fileName, format });
    const isKept = history.uploads.add({ tenant, conversationId: id, at }, { alias, record, sha256, bytes }, () => uploads.has(kept));
    if (!isKept) {
      conversations.refresh({ tenant, id });
      throw uploadRemoved();
    }
    history.conversations.touch(tenant, id, at);
    live.kept.add(alias);
    const read = await live.data.schema(alias, { signal: wanted }); // rows and columns are known from now on; so is what is wrong with it
    const taken = toAliases(live, history).find((one) => one.alias === alias);
    return json({ ...taken, ...(read.ok ? {} : { problem: read.envelope.summary }) }, { status: 201 });
  });
}

/** The same bytes were another's as well, and were removed with it in the moment in which they came again. */
function uploadRemoved(): HttpFailure {
  return new HttpFailure({
    status: 503,
    code: "UPLOAD_REMOVED",
    message: "The file was removed while it was taken.",
    hint: "Send it again.",
    retryAfterSeconds: 1,
  });
}

/** What the data module says, as it says it: digits past 2^53 are exact in its text. */
function toAnswer(answer: DataAnswer): Response {
  if (answer.ok) return jsonText(answer.json);
  const { error_code: code, summary: message, hints } = answer.envelope;
  throw new HttpFailure({
    status: statusOf(answer.envelope),
    code,
    message,
    ...(hints[0] === undefined ? {} : { hint: hints.join(" ") }),
    details: { envelope: answer.envelope },
  });
}

function statusOf({ error_code: code, error_kind: kind }: Extract<DataAnswer, { ok: false }>["envelope"]): 400 | 404 | 422 | 429 {
  if (code === "ALIAS_UNKNOWN") return 404;
  if (kind === "rate_limited") return 429;
  return kind === "mcp_input_validation" ? 400 : 422;
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}

function noAlias(alias: string): HttpFailure {
  return new HttpFailure({ status: 404, code: "ALIAS_UNKNOWN", message: `The conversation has nothing of the name ${alias}.` });
}

function failNoTable(alias: string): never {
  throw new HttpFailure({ status: 422, code: "NO_TABLE", message: `${alias} cannot be had in this form: it has no rows.` });
}
