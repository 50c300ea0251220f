import { parentPort } from "node:worker_threads";
import type { AnySchema } from "ajv";
import { createJsonSchemaValidator, type JsonSchemaValidator, type SchemaVerdict } from "./validate-json-schema.ts";
import type { ValidationRequest } from "./schema-thread.ts";

/** The thread in which schemas are compiled and applied that may take long. The host ends it when they do. */
const validators = new Map<string, JsonSchemaValidator>();

parentPort?.on("message", (request: ValidationRequest) => parentPort?.postMessage(validate(request)));
parentPort?.postMessage("ready");

function validate({ key, schemaJson, value, firstIssueOnly }: ValidationRequest): SchemaVerdict {
  const validator = validators.get(key) ?? createJsonSchemaValidator(JSON.parse(schemaJson ?? "true") as AnySchema);
  validators.set(key, validator);
  return validator.validate(value, { firstIssueOnly });
}
