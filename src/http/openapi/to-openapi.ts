import { z } from "zod";
import { httpErrorSchema } from "../../protocol/http-error.ts";
import type { Route, RouteAnswer } from "../routes/define-route.ts";
import { createComponents, type Components } from "./create-components.ts";

type Json = Record<string, unknown>;

/** The routes as an OpenAPI 3.1 document. There is no other description of them. */
export function toOpenApi(routes: readonly Route[], { version, url }: { version: string; url: string }): Json {
  const components = createComponents();
  const paths: Record<string, Json> = {};
  for (const route of routes) (paths[route.path] ??= {})[route.method] = toOperation(route, components);
  return {
    openapi: "3.1.0",
    info: {
      title: "Sluice",
      version,
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

function toOperation(route: Route, components: Components): Json {
  const { operationId, summary, tag, isOpen, body } = route;
  const answers = Object.entries(route.answers).map(([status, answer]) => [status, toAnswer(answer, components)]);
  const failure = toAnswer({ description: "Why not.", schema: httpErrorSchema }, components);
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
