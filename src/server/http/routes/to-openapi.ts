import { z } from "zod";
import { packageVersion } from "../../../package-version.ts";
import * as cells from "../../../protocol/http-cells.ts";
import * as chat from "../../../protocol/http-chat.ts";
import * as conversations from "../../../protocol/http-conversations.ts";
import * as errors from "../../../protocol/http-error.ts";
import * as operations from "../../../protocol/http-operations.ts";
import * as tables from "../../../protocol/http-tables.ts";
import * as turns from "../../../protocol/http-turns.ts";
import type { Route, RouteResponse } from "./route.ts";

type Json = Record<string, unknown>;

/** Generates the OpenAPI 3.1 document from the routes. */
export function toOpenApi(groups: readonly (readonly [tag: string, routes: readonly Route[]])[], url: string): Json {
  const components = createComponents();
  const paths: Record<string, Json> = {};
  for (const [tag, routes] of groups)
    for (const route of routes) (paths[route.path] ??= {})[route.method] = toOperation(route, tag, components);
  return {
    openapi: "3.1.0",
    info: {
      title: "Sluice",
      version: packageVersion,
      description:
        "Answers questions with tools and sandboxed Python. Every error response is `{error: {code, message, hint?, details?}}`.",
    },
    servers: [{ url }],
    paths,
    components: {
      schemas: components.schemas(),
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer" },
        cookie: { type: "apiKey", in: "cookie", name: "sluice_session_PORT" },
      },
    },
    security: [{ bearer: [] }, { cookie: [] }],
  };
}

function toOperation(route: Route, tag: string, components: Components): Json {
  const { operationId, summary, isOpen, body } = route;
  const responses = Object.entries(route.responses).map(([status, response]) => [status, toResponse(response, components)]);
  const error = toResponse({ description: "An error, with its code and what to do about it.", schema: errors.httpErrorSchema }, components);
  return {
    operationId,
    summary,
    tags: [tag],
    security: isOpen ? [] : undefined,
    parameters: toParameters(route),
    requestBody: body === undefined ? undefined : toRequestBody(body, components),
    responses: { ...Object.fromEntries(responses), default: error },
  };
}

function toRequestBody(body: NonNullable<Route["body"]>, components: Components): Json {
  const types = { bytes: "application/octet-stream", form: "application/x-www-form-urlencoded" };
  const content =
    typeof body === "string" ? { [types[body]]: {} } : { "application/json": { schema: components.reference(body, "input") } };
  return { required: true, content };
}

function toResponse({ description, schema, contentType }: RouteResponse, components: Components): Json {
  if (schema !== undefined) return { description, content: { "application/json": { schema: components.reference(schema, "output") } } };
  return { description, content: contentType === undefined ? undefined : { [contentType]: {} } };
}

function toParameters({ path, query, headers = [] }: Route): Json[] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  const described = query === undefined ? { properties: {} } : (z.toJSONSchema(query, { io: "input", unrepresentable: "any" }) as Json);
  const required = new Set((described["required"] as string[] | undefined) ?? []);
  const properties = Object.entries(described["properties"] as Record<string, Json>);
  return [
    ...names.map((name) => ({ name, in: "path", required: true, schema: { type: "string" } })),
    ...properties.map(([name, schema]) => ({ name, in: "query", required: required.has(name), schema })),
    ...headers.map(({ name, description }) => ({ name, in: "header", required: false, description, schema: { type: "string" } })),
  ];
}

type Components = ReturnType<typeof createComponents>;

/** Collects the schemas that the document refers to by name. */
function createComponents() {
  const schemas: Record<string, Json> = {};
  const names = new Map<z.ZodType, string>();

  return {
    reference(schema: z.ZodType, io: "input" | "output"): Json {
      const name = names.get(schema) ?? schemaNames.get(schema) ?? `Schema${names.size + 1}`;
      if (!names.has(schema)) {
        names.set(schema, name);
        const { $schema: _, $defs = {}, ...body } = z.toJSONSchema(schema, { io, unrepresentable: "any" }) as Json;
        const toComponentName = (inner: string): string => `${name}.${inner.replaceAll(/\W/g, "")}`;
        for (const [inner, definition] of Object.entries($defs as Record<string, Json>))
          schemas[toComponentName(inner)] = updateReferences(definition, name, toComponentName);
        schemas[name] = updateReferences(body, name, toComponentName);
      }
      return { $ref: `#/components/schemas/${name}` };
    },
    schemas: (): Record<string, Json> => schemas,
  };
}

/** Makes references inside a schema relative to the document. */
function updateReferences(schema: Json, name: string, toComponentName: (inner: string) => string): Json {
  const text = JSON.stringify(schema, (key, value: unknown) => {
    if (key !== "$ref" || typeof value !== "string") return value;
    if (value === "#") return `#/components/schemas/${name}`;
    return value.startsWith("#/$defs/") ? `#/components/schemas/${toComponentName(value.slice("#/$defs/".length))}` : value;
  });
  return JSON.parse(text) as Json;
}

/** Schemas have the same names as in the code (`turnListSchema` is `TurnList`), with two exceptions. */
const schemaNames: ReadonlyMap<unknown, string> = new Map(
  Object.entries({ ...cells, ...chat, ...conversations, ...errors, ...operations, ...tables, ...turns })
    .map(([key, schema]): [unknown, string] => [schema, `${key[0]!.toUpperCase()}${key.slice(1)}`.replace(/Schema$/, "")])
    .concat([
      [errors.httpErrorSchema, "Error"],
      [turns.turnDocumentSchema, "Turn"],
    ]),
);
