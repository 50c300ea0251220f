import { z } from "zod";
import { schemaNames } from "./schema-names.ts";

type Json = Record<string, unknown>;

/** Schemas that the document refers to by name, each there once. */
export interface Components {
  reference(schema: z.ZodType, io: "input" | "output"): Json;
  schemas(): Record<string, Json>;
}

export function createComponents(): Components {
  const schemas: Record<string, Json> = {};
  const names = new Map<z.ZodType, string>();

  return {
    reference(schema, io) {
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
    schemas: () => schemas,
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
