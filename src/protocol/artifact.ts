import { z } from "zod";
import { chartRowsSchema, chartSpecSchema } from "./chart-spec.ts";
import { checkChart } from "./check-chart.ts";
import { figureSchema } from "./figure.ts";

const fileName = /^(?:\S+\.\w{2,5}|.*\.(?:png|jpe?g|svg|gif|webp|pdf))$/iu;

/** Whether an alt text is meaningful: at least 10 characters, with letters, and not a file name. */
export function saysSomething(alt: string): boolean {
  const text = alt.trim();
  return [...text].length >= 10 && /\p{L}/u.test(text) && !fileName.test(text);
}

/** Maximum lengths in characters. */
export const artifactTextLimits = { alt: 10_000, title: 500 } as const;

/** Bytes in the artifact store, by their sha256. */
export const storedBytesSchema = z.strictObject({
  contentHash: z.string().regex(/^[0-9a-f]{64}$/),
  url: z.string(),
  bytes: z.int().positive(),
});

const title = z.string().max(artifactTextLimits.title).optional();

/** A matplotlib picture after validation and storage. */
const imageArtifactSchema = z.strictObject({
  schemaVersion: z.literal(1),
  kind: z.literal("image"),
  ...storedBytesSchema.shape,
  alt: z
    .string()
    .max(artifactTextLimits.alt)
    .refine(saysSomething, { error: "must say what the picture shows, in at least 10 characters" }),
  title,
  width: z.int().positive(),
  height: z.int().positive(),
  /** The data behind the picture. */
  figure: figureSchema.optional(),
  /** Where the same data are stored as JSON. */
  figureData: storedBytesSchema.optional(),
});

const chartArtifactSchema = z
  .strictObject({
    schemaVersion: z.literal(1),
    kind: z.literal("chart"),
    /** Of the spec and the rows as JSON. */
    ...storedBytesSchema.shape,
    spec: chartSpecSchema,
    data: chartRowsSchema,
    title,
  })
  .refine(({ spec, data }) => checkChart(spec, data).length === 0, { error: "the spec does not match its rows" });

/** An artifact with its data, as the library returns it. Events, HTTP answers and rows of the history hold an `ArtifactReference`. */
export const artifactSchema = z.union([imageArtifactSchema, chartArtifactSchema]);

export type StoredBytes = z.infer<typeof storedBytesSchema>;
export type ImageArtifact = z.infer<typeof imageArtifactSchema>;
export type ChartArtifact = z.infer<typeof chartArtifactSchema>;
export type ArtifactEnvelope = z.infer<typeof artifactSchema>;
