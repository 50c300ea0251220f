import { z } from "zod";
import { ellipsize } from "../text/clip-text.ts";
import { artifactTextLimits, storedBytesSchema, type ArtifactEnvelope } from "./artifact.ts";
import type { ChartSpec } from "./chart-spec.ts";

const count = z.int().nonnegative();

/**
 * An artifact without its data: what events, HTTP answers and database rows hold. `url` is the PNG of an image, and the spec and the rows of a chart as
 * JSON; the data behind an image are at `figureData.url`. Everything is addressed by the sha256 of its bytes and never changes.
 */
export const artifactReferenceSchema = z.strictObject({
  kind: z.enum(["image", "chart"]),
  ...storedBytesSchema.shape,
  title: z.string().max(artifactTextLimits.title).optional(),
  /** What an image shows; for a chart, its type and its series. */
  alt: z.string().max(artifactTextLimits.alt).optional(),
  /** Only of an image, in pixels. */
  width: z.int().positive().optional(),
  height: z.int().positive().optional(),
  /** How much was drawn. Missing for an image whose data could not be read. */
  summary: z.strictObject({ series: count, points: count }).optional(),
  /** Only of an image: the data behind it. */
  figureData: storedBytesSchema.optional(),
});

export type ArtifactReference = z.infer<typeof artifactReferenceSchema>;

/** The only way from an artifact with its data to its reference. */
export function toArtifactReference(artifact: ArtifactEnvelope): ArtifactReference {
  const { kind, contentHash, url, bytes } = artifact;
  const shared = { kind, contentHash, url, bytes, ...(artifact.title === undefined ? {} : { title: artifact.title }) };
  if (artifact.kind === "chart") return { ...shared, alt: describeChart(artifact.spec), summary: summarizeChart(artifact) };
  const { alt, width, height, figure, figureData } = artifact;
  return {
    ...shared,
    ...{ alt, width, height },
    ...(figure && { summary: summarizeFigure(figure) }),
    ...(figureData && { figureData }),
  };
}

/** The text for a chart without a title. */
export function describeChart({ type, series }: ChartSpec): string {
  return ellipsize(`${type} chart of ${series.map(({ key }) => key).join(", ")}`, artifactTextLimits.alt);
}

/** Heatmaps and candlesticks have one series without an entry in the spec. */
function summarizeChart({ spec, data }: Extract<ArtifactEnvelope, { kind: "chart" }>): ArtifactReference["summary"] {
  const series = Math.max(1, spec.series.length);
  return { series, points: series * data.length };
}

function summarizeFigure({ axes }: NonNullable<Extract<ArtifactEnvelope, { kind: "image" }>["figure"]>): ArtifactReference["summary"] {
  const all = axes.flatMap(({ series }) => series);
  const points = all.map(({ type, x, y }) => (type === "heatmap" ? x.length * y.length : x.length));
  return { series: all.length, points: points.reduce((sum, more) => sum + more, 0) };
}
