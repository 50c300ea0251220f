/** `sluice/protocol`: the wire formats as zod schemas and types. Also runs in a browser, because nothing here needs Node.js. */
export * from "../protocol/artifact.ts";
export { artifactReferenceSchema, toArtifactReference, type ArtifactReference } from "../protocol/artifact-reference.ts";
export * from "../protocol/chart-spec.ts";
export * from "../protocol/figure.ts";
export { readFigure } from "../protocol/read-figure.ts";
export * from "../protocol/turn-events.ts";
export * from "../protocol/turn-plan.ts";
export * from "../protocol/turn-result.ts";
export * from "../protocol/http-cells.ts";
export * from "../protocol/http-chat.ts";
export * from "../protocol/http-conversations.ts";
export * from "../protocol/http-error.ts";
export * from "../protocol/http-operations.ts";
export * from "../protocol/http-tables.ts";
export * from "../protocol/http-turns.ts";
export { toolErrorSchema, type ToolError, type ToolErrorDetail, type ToolErrorMeta } from "../errors/tool-error.ts";
