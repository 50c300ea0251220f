import { z } from "zod";
import type { ArtifactType } from "../../../artifacts/artifact-store.ts";
import { openRowsDownload, openTableDownload } from "../../../data/open-table-download.ts";
import { givenTableSchema, type GivenTable } from "../../../protocol/http-tables.ts";
import { HttpFailure } from "../http-failure.ts";
import type { ServerParts } from "../open-parts.ts";
import { type Route, type RouteRequest, takesSandbox } from "./route.ts";
import { immutable, isKnown, notModified, toDownload } from "./to-download.ts";

const contentTypes: Readonly<Record<ArtifactType, string>> = { png: "image/png", json: "application/json" };
const tableTypes = { csv: "text/csv", parquet: "application/vnd.apache.parquet" } as const;
const download = z.object({ download: z.literal("1").optional() });
/** More than the numbers of the largest figure. */
const MAX_TABLE_BYTES = 16 * 1024 * 1024;
const unchanged = { description: "The client has it." };

type FileParts = Pick<ServerParts, "history" | "storesOf" | "configured">;

/** What turns leave behind, under names that never mean anything else. */
export function fileRoutes(parts: FileParts): Route[] {
  const datasets = [datasetRoute(parts), tableRoute(parts, "csv"), tableRoute(parts, "parquet")];
  return [artifactRoute(parts, "png"), artifactRoute(parts, "json"), ...datasets, givenTableRoute(parts)];
}

function artifactRoute({ storesOf }: FileParts, type: ArtifactType): Route {
  return {
    method: "get",
    path: `/artifacts/{contentHash}.${type}`,
    operationId: type === "png" ? "getImage" : "getChart",
    summary: type === "png" ? "A picture." : "A chart, as its spec and its rows.",
    query: download,
    answers: { 200: { description: "The artifact.", contentType: contentTypes[type] }, 304: unchanged },
    async handle({ request, parameters, query, principal: { tenant } }) {
      const contentHash = parameters["contentHash"]!;
      const etag = `"${contentHash}"`;
      const bytes = await storesOf(tenant).artifacts.get(contentHash, type);
      if (bytes === null) throw noFile();
      if (isKnown(request, etag)) return notModified(etag);
      return new Response(bytes as Uint8Array<ArrayBuffer>, {
        headers: {
          "content-type": contentTypes[type],
          "content-length": String(bytes.length),
          "cache-control": immutable,
          etag,
          ...(query["download"] === undefined
            ? {}
            : { "content-disposition": `attachment; filename="${contentHash.slice(0, 12)}.${type}"` }),
        },
      });
    },
  };
}

function tableRoute({ history, storesOf, configured }: FileParts, as: "csv" | "parquet"): Route {
  return {
    method: "get",
    path: `/data/{datasetId}/tables/{alias}.${as}`,
    operationId: as === "csv" ? "getDatasetCsv" : "getDatasetParquet",
    beginsWork: takesSandbox,
    summary: `A table of a dataset as ${as === "csv" ? "CSV; text that a spreadsheet would take for a formula is prefixed with '" : "Parquet"}.`,
    query: download,
    answers: { 200: { description: "The table.", contentType: tableTypes[as] }, 304: unchanged },
    async handle({ request, parameters, principal: { tenant }, signal }) {
      const { hash, etag } = findDataset(history, { parameters, tenant }, `-${parameters["alias"]}-${as}`);
      if (isKnown(request, etag)) return notModified(etag);
      const { openCellSession } = configured.runtime;
      const { datasets } = storesOf(tenant);
      const found = await openTableDownload({ datasets, hash, table: parameters["alias"]!, as, openCellSession, signal });
      if (found === null) throw noFile();
      return await toDownload(request, found, { isAttachment: true, etag });
    },
  };
}

function datasetRoute({ history, storesOf }: FileParts): Route {
  return {
    method: "get",
    path: "/data/{datasetId}.json",
    operationId: "getDataset",
    summary: "Everything that an answer rests on, in one document.",
    query: download,
    answers: { 200: { description: "The dataset.", contentType: "application/json" }, 304: unchanged },
    async handle({ request, parameters, query, principal: { tenant } }) {
      const { hash, etag } = findDataset(history, { parameters, tenant });
      if (isKnown(request, etag)) return notModified(etag);
      const reader = await storesOf(tenant).datasets.open(hash);
      if (reader === null) throw noFile();
      const file = {
        fileName: `${parameters["datasetId"]}.json`,
        contentType: "application/json",
        bytes: reader.bytes,
        stream: () => reader.stream(),
      };
      return await toDownload(request, file, { isAttachment: query["download"] !== undefined, etag });
    },
  };
}

function givenTableRoute({ configured }: FileParts): Route {
  return {
    method: "post",
    path: "/api/tables.parquet",
    operationId: "writeParquet",
    beginsWork: takesSandbox,
    summary: "Rows as a Parquet file. Nothing is kept.",
    body: givenTableSchema,
    maxBodyBytes: MAX_TABLE_BYTES,
    answers: { 200: { description: "The table.", contentType: tableTypes.parquet } },
    async handle({ request, body, signal }) {
      const { openCellSession } = configured.runtime;
      return await toDownload(request, await openRowsDownload({ table: body as GivenTable, openCellSession, signal }), {
        isAttachment: true,
      });
    },
  };
}

function findDataset(
  history: FileParts["history"],
  { parameters, tenant }: Pick<RouteRequest, "parameters"> & { tenant: string },
  what = "",
): { hash: string; etag: string } {
  const found = history.turns.findDataset(tenant, parameters["datasetId"]!);
  if (found === null) throw noFile();
  return { hash: found.hash, etag: `"${found.hash}${what}"` };
}

function noFile(): HttpFailure {
  return new HttpFailure({ code: "FILE_NOT_FOUND", message: "There is no such file, or it was removed with its turn." });
}
