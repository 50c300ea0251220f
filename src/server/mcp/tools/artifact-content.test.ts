import { expect, it } from "vitest";
import type { ChartArtifact } from "../../../protocol/artifact.ts";
import { toArtifactContent, type PublishedArtifact } from "./artifact-content.ts";

const limit = 256 * 1024;
const uri = (name: string): string => `sluice://artifacts/${name.repeat(64)}`;

function image(name: string, bytes: number): PublishedArtifact {
  const contentHash = name.repeat(64);
  const place = { schemaVersion: 1, kind: "image", url: uri(name), contentHash, bytes } as const;
  return { artifact: { ...place, alt: "A line that rises", width: 2, height: 2 }, picture: new Uint8Array(bytes) };
}

function chart(name: string, bytes: number): PublishedArtifact & { readonly artifact: ChartArtifact } {
  const place = { schemaVersion: 1, kind: "chart", url: uri(name), contentHash: name.repeat(64), bytes } as const;
  return { artifact: { ...place, spec: { type: "bar", xKey: "x", series: [{ key: "y" }] }, data: [{ x: "a", y: 1 }] }, picture: null };
}

const described = (bytes: number): string =>
  `(${bytes} bytes; a result includes at most 262144 bytes of pictures and charts: read the resource)`;

it("includes pictures while the result stays small and links to the others", () => {
  const [small, large, later] = toArtifactContent([image("a", 3), image("b", limit - 2), image("c", 3)]).content;
  expect(small).toEqual({
    type: "image",
    data: "AAAA",
    mimeType: "image/png",
    _meta: { alt: "A line that rises", url: uri("a") },
  });
  expect(large).toEqual({
    type: "resource_link",
    uri: uri("b"),
    name: `${"b".repeat(64)}.png`,
    title: "A line that rises",
    description: `A line that rises ${described(limit - 2)}`,
    mimeType: "image/png",
    size: limit - 2,
  });
  expect(later?.type).toBe("image");
});

it("includes charts and pictures up to one limit, and always a table of a chart", () => {
  const [first, large, last] = [chart("a", 100_000), chart("b", 200_000), chart("c", limit - 100_000)];
  const { content, charts } = toArtifactContent([first, large, last, image("d", 1)]);
  expect(charts).toEqual([first.artifact, last.artifact]);
  expect(content.map(({ type }) => type)).toEqual(["text", "text", "resource_link", "text", "resource_link"]);
  expect(content[2]).toEqual({
    type: "resource_link",
    uri: uri("b"),
    name: `${"b".repeat(64)}.json`,
    title: "bar chart of y",
    description: `bar chart of y ${described(200_000)}`,
    mimeType: "application/json",
    size: 200_000,
  });
});

it("links to a picture that the store no longer has, and says where the data behind a picture are", () => {
  const figureData = { contentHash: "e".repeat(64), url: uri("e"), bytes: 5 };
  const { artifact } = image("a", 3);
  const withData = { ...artifact, figureData } as typeof artifact;
  const [gone, inline] = toArtifactContent([
    { artifact: withData, picture: null },
    { artifact: withData, picture: new Uint8Array(3) },
  ]).content;
  expect(gone).toMatchObject({ type: "resource_link", uri: uri("a"), _meta: { figureData } });
  expect(inline).toMatchObject({ type: "image", _meta: { figureData } });
});
