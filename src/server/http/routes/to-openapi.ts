import { z } from "zod";
import { packageVersion } from "../../../package-version.ts";
import * as cells from "../../../protocol/http-cells.ts";
import * as chat from "../../../protocol/http-chat.ts";
import * as conversations from "../../../protocol/http-conversations.ts";
import * as errors from "../../../protocol/http-error.ts";
import * as operations from "../../../protocol/http-operations.ts";
import * as tables from "../../../protocol/http-tables.ts";
import * as turns from "../../../protocol/http-turns.ts";
import type { Route, RouteAnswer } from "./route.ts";

type Json = Record<string, unknown>;

/** The routes as an OpenAPI 3.1 document. There is no other description of them. */
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
      description: "Questions answered with tools and sandboxed Python. Every failure is `{error: {code, message, hint?, details?}}`.",
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
  const answers = Object.entries(route.answers).map(([status, answer]) => [status, toAnswer(answer, components)]);
  const failure = toAnswer({ description: "Why not.", schema: errors.httpErrorSchema }, components);
  return {
    operationId,
    summary,
    tags: [tag],
    ...(isOpen ? { security: [] } : {}),
    parameters: toParameters(route),
    ...(body === undefined ? {} : { requestBody: toRequestBody(body, components) }),
    responses: { ...Object.fromEntries(answers), default: failure },
  };
}

function toRequestBody(body: z.ZodType | "bytes", components: Components): Json {
  const content =
    body === "bytes" ? { "application/octet-stream": {} } : { "application/json": { schema: components.reference(body, "input") } };
  return { required: true, content };
}

function toAnswer({ description, schema, contentType }: RouteAnswer, components: Components): Json {
  if (schema !== undefined) return { description, content: { "application/json": { schema: components.reference(schema, "output") } } };
  return { description, ...(contentType === undefined ? {} : { content: { [contentType]: {} } }) };
}

function toParameters({ path, query, headers = [] }: Route): Json[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({ name, in: "path", required: true, schema: { type: "string" } }));
  const described = query === undefined ? { properties: {} } : (z.toJSONSchema(query, { io: "input", unrepresentable: "any" }) as Json);
  const required = new Set((described["required"] as string[] | undefined) ?? []);
  const inQuery = Object.entries(described["properties"] as Record<string, Json>).map(([name, schema]) => ({
    name,
    in: "query",
    required: required.has(name),
    schema,
  }));
  const inHeaders = headers.map(({ name, description }) => ({
    name,
    in: "header",
    required: false,
    description,
    schema: { type: "string" },
  }));
  return [...inPath, ...inQuery, ...inHeaders];
}

type Components = ReturnType<typeof createComponents>;

/** Schemas that the document refers to by name, each there once. */
function createComponents() {
  const schemas: Record<string, Json> = {};
  const names = new Map<z.ZodType, string>();

  return {
    reference(schema: z.ZodType, io: "input" | "output"): Json {
      const name = names.get(schema) ?? schemaNames.get(schema) ?? `Schema${names.size + 1}`;
      if (!names.has(schema)) {
        names.set(schema, name);
        const { $schema: _, $defs = {}, ...body } = z.toJSONSchema(schema, { io, unrepresentable: "any" }) as Json;
        const renamed = (inner: string): string => `${name}.${inner.replaceAll(/\W/g, "")}`;
        for (const [inner, definition] of Object.entries($defs as Record<string, Json>))
          schemas[renamed(inner)] = moved(definition, name, renamed);
        schemas[name] = moved(body, name, renamed);
      }
      return { $ref: `#/components/schemas/${name}` };
    },
    schemas: (): Record<string, Json> => schemas,
  };
}

/** References inside of a schema are counted from the document now. */
function moved(value: Json, name: string, renamed: (inner: string) => string): Json {
  const text = JSON.stringify(value, (key, one: unknown) => {
    if (key !== "$ref" || typeof one !== "string") return one;
    if (one === "#") return `#/components/schemas/${name}`;
    return one.startsWith("#/$defs/") ? `#/components/schemas/${renamed(one.slice("#/$defs/".length))}` : one;
  });
  return JSON.parse(text) as Json;
}

/** A schema is called in the document what it is called in the code, `turnListSchema` as `TurnList`; but for two. */
const schemaNames: ReadonlyMap<unknown, string> = new Map(
  Object.entries({ ...cells, ...chat, ...conversations, ...errors, ...operations, ...tables, ...turns })
    .map(([key, schema]): [unknown, string] => [schema, `${key[0]!.toUpperCase()}${key.slice(1)}`.replace(/Schema$/, "")])
    .concat([
      [errors.httpErrorSchema, "Error"],
      [turns.turnDocumentSchema, "Turn"],
    ]),
);
