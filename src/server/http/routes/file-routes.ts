import { z } from "zod";
import type { ArtifactType } from "../../../artifacts/artifact-store.ts";
import { openRowsDownload, openTableDownload } from "../../../data/open-table-download.ts";
import { givenTableSchema, type GivenTable } from "../../../protocol/http-tables.ts";
import { HttpFailure } from "../http-failure.ts";
import type { ServerParts } from "../open-parts.ts";
import { type Route, type RouteRequest, takesSandbox } from "./route.ts";
import { immutable, matchesEtag, notModified, toDownload } from "./to-download.ts";

const artifactTypes: Readonly<Record<ArtifactType, string>> = { png: "image/png", json: "application/json" };
const tableTypes = { csv: "text/csv", parquet: "application/vnd.apache.parquet" } as const;
const downloadQuery = z.object({ download: z.literal("1").optional() });
/** More than the data of the largest figure. */
const MAX_TABLE_BYTES = 16 * 1024 * 1024;
const unchanged = { description: "The client already has this version." };

type FileParts = Pick<ServerParts, "history" | "storesOf" | "configured">;
type TableFormat = keyof typeof tableTypes;

/** Artifacts and datasets of turns. Their addresses contain a hash, so that the content behind one never changes. */
export function fileRoutes(parts: FileParts): Route[] {
  const datasetRoutes = [datasetRoute(parts), tableRoute(parts, "csv"), tableRoute(parts, "parquet")];
  return [artifactRoute(parts, "png"), artifactRoute(parts, "json"), ...datasetRoutes, parquetRoute(parts)];
}

function artifactRoute(parts: FileParts, type: ArtifactType): Route {
  return {
    method: "get",
    path: `/artifacts/{contentHash}.${type}`,
    operationId: type === "png" ? "getImage" : "getChart",
    summary: type === "png" ? "Get an image." : "Get a chart, its spec and its rows, or the data behind an image.",
    query: downloadQuery,
    responses: { 200: { description: "The artifact.", contentType: artifactTypes[type] }, 304: unchanged },
    handle: (request) => getArtifact(parts, request, type),
  };
}

async function getArtifact(
  { storesOf }: FileParts,
  { request, parameters, query, principal: { tenant } }: RouteRequest,
  type: ArtifactType,
): Promise<Response> {
  const contentHash = parameters["contentHash"]!;
  const etag = `"${contentHash}"`;
  const bytes = await storesOf(tenant).artifacts.get(contentHash, type);
  if (bytes === null) throw fileNotFound();
  if (matchesEtag(request, etag)) return notModified(etag);
  return new Response(bytes as Uint8Array<ArrayBuffer>, {
    headers: {
      "content-type": artifactTypes[type],
      "content-length": String(bytes.length),
      "cache-control": immutable,
      etag,
      ...(query["download"] === undefined ? {} : { "content-disposition": `attachment; filename="${contentHash.slice(0, 12)}.${type}"` }),
    },
  });
}

function tableRoute(parts: FileParts, as: TableFormat): Route {
  return {
    method: "get",
    path: `/data/{datasetId}/tables/{alias}.${as}`,
    operationId: as === "csv" ? "getDatasetCsv" : "getDatasetParquet",
    beginsWork: takesSandbox,
    summary: `Get a table of a dataset as ${as === "csv" ? "CSV. Text that a spreadsheet would run as a formula is prefixed with '" : "Parquet"}.`,
    query: downloadQuery,
    responses: { 200: { description: "The table.", contentType: tableTypes[as] }, 304: unchanged },
    handle: (request) => getTable(parts, request, as),
  };
}

async function getTable(
  { history, storesOf, configured }: FileParts,
  { request, parameters, principal: { tenant }, signal }: RouteRequest,
  as: TableFormat,
): Promise<Response> {
  const { hash, etag } = findDataset(history, { parameters, tenant }, `-${parameters["alias"]}-${as}`);
  if (matchesEtag(request, etag)) return notModified(etag);
  const { openCellSession } = configured.runtime;
  const { datasets } = storesOf(tenant);
  const download = await openTableDownload({ datasets, hash, table: parameters["alias"]!, as, openCellSession, signal });
  if (download === null) throw fileNotFound();
  return await toDownload(request, download, { isAttachment: true, etag });
}

function datasetRoute(parts: FileParts): Route {
  return {
    method: "get",
    path: "/data/{datasetId}.json",
    operationId: "getDataset",
    summary: "Get all data behind an answer, in one document.",
    query: downloadQuery,
    responses: { 200: { description: "The dataset.", contentType: "application/json" }, 304: unchanged },
    handle: (request) => getDataset(parts, request),
  };
}

async function getDataset(
  { history, storesOf }: FileParts,
  { request, parameters, query, principal: { tenant } }: RouteRequest,
): Promise<Response> {
  const { hash, etag } = findDataset(history, { parameters, tenant });
  if (matchesEtag(request, etag)) return notModified(etag);
  const reader = await storesOf(tenant).datasets.open(hash);
  if (reader === null) throw fileNotFound();
  const file = {
    fileName: `${parameters["datasetId"]}.json`,
    contentType: "application/json",
    bytes: reader.bytes,
    stream: () => reader.stream(),
  };
  return await toDownload(request, file, { isAttachment: query["download"] !== undefined, etag });
}

function parquetRoute({ configured }: FileParts): Route {
  return {
    method: "post",
    path: "/api/tables.parquet",
    operationId: "writeParquet",
    beginsWork: takesSandbox,
    summary: "Convert rows to a Parquet file. Nothing is stored.",
    body: givenTableSchema,
    maxBodyBytes: MAX_TABLE_BYTES,
    responses: { 200: { description: "The table.", contentType: tableTypes.parquet } },
    async handle({ request, body, signal }) {
      const { openCellSession } = configured.runtime;
      const download = await openRowsDownload({ table: body as GivenTable, openCellSession, signal });
      return await toDownload(request, download, { isAttachment: true });
    },
  };
}

/** Throws FILE_NOT_FOUND. */
function findDataset(
  history: FileParts["history"],
  { parameters, tenant }: Pick<RouteRequest, "parameters"> & { tenant: string },
  etagSuffix = "",
): { hash: string; etag: string } {
  const found = history.turns.findDataset(tenant, parameters["datasetId"]!);
  if (found === null) throw fileNotFound();
  return { hash: found.hash, etag: `"${found.hash}${etagSuffix}"` };
}

function fileNotFound(): HttpFailure {
  return new HttpFailure({ code: "FILE_NOT_FOUND", message: "The file does not exist, or was removed with its turn." });
}
