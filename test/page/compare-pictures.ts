import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Page } from "playwright-core";

const references = path.join(import.meta.dirname, "references");

export function hasReference(name: string): boolean {
  return existsSync(fileOf(name));
}

/**
 * Returns the share of differing pixels, relative to the pixels that the reference draws on; most of a chart is background, in which a lost line would not
 * count. A pixel differs if its colour is outside the range of the colours around that place in the other picture, so different smoothing and shifts by one
 * pixel do not count. Returns 1 if the sizes differ. Without a reference, writes the picture as the new reference, to be checked and committed, and returns 1.
 */
export async function shareOfDifference(page: Page, name: string, png: Buffer): Promise<number> {
  const file = fileOf(name);
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
      const { width, height } = a;
      if (width !== b.width || height !== b.height) return 1;
      const slack = 12;
      const isOutside = (one: ImageData, x: number, y: number, other: ImageData): boolean => {
        for (let channel = 0; channel < 3; channel += 1) {
          let [least, most] = [255, 0];
          for (let row = Math.max(0, y - 1); row <= Math.min(height - 1, y + 1); row += 1)
            for (let column = Math.max(0, x - 1); column <= Math.min(width - 1, x + 1); column += 1) {
              const value = other.data[(row * width + column) * 4 + channel] ?? 0;
              if (value < least) least = value;
              if (value > most) most = value;
            }
          const value = one.data[(y * width + x) * 4 + channel] ?? 0;
          if (value < least - slack || value > most + slack) return true;
        }
        return false;
      };
      let [different, drawn] = [0, 0];
      for (let y = 0; y < height; y += 1)
        for (let x = 0; x < width; x += 1) {
          const at = (y * width + x) * 4;
          // The first pixel is background.
          if ([0, 1, 2].some((channel) => Math.abs((a.data[at + channel] ?? 0) - (a.data[channel] ?? 0)) > slack)) drawn += 1;
          if (isOutside(a, x, y, b) || isOutside(b, x, y, a)) different += 1;
        }
      return different / Math.max(1, drawn);
    },
    [readFileSync(file).toString("base64"), png.toString("base64")] as const,
  );
}

function fileOf(name: string): string {
  return path.join(references, `${name}.png`);
}
