import { z } from "zod";
import { chartRowsSchema, chartSpecSchema } from "./chart-spec.ts";
import { checkChart } from "./check-chart.ts";
import { figureSchema } from "./figure.ts";
import { figureVersion1Schema } from "./read-figure.ts";

const fileName = /^(?:\S+\.\w{2,5}|.*\.(?:png|jpe?g|svg|gif|webp|pdf))$/iu;

/** Whether an alt text is meaningful: at least 10 characters, with letters, and not a file name. */
export function saysSomething(alt: string): boolean {
  const text = alt.trim();
  return [...text].length >= 10 && /\p{L}/u.test(text) && !fileName.test(text);
}

/** Maximum lengths in characters. */
export const artifactTextLimits = { alt: 10_000, title: 500 } as const;

const contentHash = z.string().regex(/^[0-9a-f]{64}$/);
const title = z.string().max(artifactTextLimits.title).optional();

/** A matplotlib picture after validation and storage. */
const imageArtifactSchema = z.strictObject({
  schemaVersion: z.literal(1),
  kind: z.literal("image"),
  url: z.string(),
  alt: z
    .string()
    .max(artifactTextLimits.alt)
    .refine(saysSomething, { error: "must say what the picture shows, in at least 10 characters" }),
  title,
  contentHash,
  bytes: z.int().positive(),
  width: z.int().positive(),
  height: z.int().positive(),
  /** As it was stored: open it with `readFigure`. */
  figure: z.union([figureSchema, figureVersion1Schema]).optional(),
});

const chartArtifactSchema = z
  .strictObject({
    schemaVersion: z.literal(1),
    kind: z.literal("chart"),
    url: z.string(),
    spec: chartSpecSchema,
    data: chartRowsSchema,
    title,
    contentHash,
  })
  .refine(({ spec, data }) => checkChart(spec, data).length === 0, { error: "the spec does not match its rows" });

export const artifactSchema = z.union([imageArtifactSchema, chartArtifactSchema]);

export type ImageArtifact = z.infer<typeof imageArtifactSchema>;
export type ChartArtifact = z.infer<typeof chartArtifactSchema>;
export type ArtifactEnvelope = z.infer<typeof artifactSchema>;
