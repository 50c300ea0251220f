import { expect, it } from "vitest";
import { type PublishedImage, toImageContent } from "./to-served-tool.ts";

function image(name: string, size: number): PublishedImage {
  const contentHash = name.repeat(64);
  const artifact = {
    schemaVersion: 1,
    kind: "image",
    url: `sluice://artifacts/${contentHash}`,
    alt: "A line that rises",
    contentHash,
    bytes: size,
    width: 2,
    height: 2,
  } as const;
  return { artifact, bytes: new Uint8Array(size) };
}

it("gives pictures inline as long as a result stays small, and links to the others", () => {
  const [small, large, later] = toImageContent([image("a", 3), image("b", 800_000), image("c", 3)]);
  expect(small).toEqual({
    type: "image",
    data: "AAAA",
    mimeType: "image/png",
    _meta: { alt: "A line that rises", url: `sluice://artifacts/${"a".repeat(64)}` },
  });
  expect(large).toEqual({
    type: "resource_link",
    uri: `sluice://artifacts/${"b".repeat(64)}`,
    name: `${"b".repeat(64)}.png`,
    title: "A line that rises",
    description: "A line that rises (800000 bytes, too large to be shown here: read the resource)",
    mimeType: "image/png",
    size: 800_000,
  });
  expect(later?.type).toBe("image");
});
