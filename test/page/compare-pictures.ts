import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Page } from "playwright-core";

const references = path.join(import.meta.dirname, "references");

/**
 * The share of pixels in which a picture differs visibly from its reference; 1 when the sizes differ. A reference that is not there is written and
 * counts as different, so that someone looks at it before it is committed.
 */
export async function shareOfDifference(page: Page, name: string, png: Buffer): Promise<number> {
  const file = path.join(references, `${name}.png`);
  if (!existsSync(file)) {
    mkdirSync(references, { recursive: true });
    writeFileSync(file, png);
    return 1;
  }
  return page.evaluate(
    async ([reference, seen]) => {
      const pixels = async (base64: string): Promise<ImageData> => {
        const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
        const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
        const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
        if (!context) throw new Error("no canvas");
        context.drawImage(image, 0, 0);
        return context.getImageData(0, 0, image.width, image.height);
      };
      const [a, b] = [await pixels(reference), await pixels(seen)];
      if (a.width !== b.width || a.height !== b.height) return 1;
      let different = 0;
      for (let at = 0; at < a.data.length; at += 4) {
        const distance = [0, 1, 2].reduce((sum, channel) => sum + Math.abs((a.data[at + channel] ?? 0) - (b.data[at + channel] ?? 0)), 0);
        if (distance > 96) different += 1;
      }
      return different / (a.data.length / 4);
    },
    [readFileSync(file).toString("base64"), png.toString("base64")] as const,
  );
}
