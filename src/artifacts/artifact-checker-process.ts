/** The program of the process that decodes pictures and validates large JSON from sandboxes. */
import { serveProcess } from "../concurrency/worker-process.ts";
import { checkArtifactJson, type ArtifactJsonKind } from "./create-artifact-checker.ts";
import { readPng } from "./read-png.ts";

serveProcess((kind, bytes) => (kind === "png" ? readPng(bytes) : { why: checkArtifactJson(kind as ArtifactJsonKind, bytes) }));
