import { texts } from "../../texts.ts";

const kept = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-opacity",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linejoin",
  "paint-order",
  "font-family",
  "font-size",
  "font-weight",
  "text-anchor",
] as const;

/** The drawing of a chart as a file of its own: every colour and font that the page gave it is written into it, with its title above. */
export function toSvg(drawing: SVGSVGElement, title: string): { svg: string; width: number; height: number } {
  const copy = drawing.cloneNode(true) as SVGSVGElement;
  const [sources, targets] = [[...drawing.querySelectorAll("*")], [...copy.querySelectorAll("*")]];
  for (const [index, source] of sources.entries()) {
    const target = targets[index];
    if (!target) continue;
    const style = getComputedStyle(source);
    target.removeAttribute("style");
    target.removeAttribute("class");
    for (const name of kept) target.setAttribute(name, style.getPropertyValue(name));
  }
  for (const hover of copy.querySelectorAll("[data-hover]")) hover.remove();
  const { width, height } = drawing.getBoundingClientRect();
  const page = getComputedStyle(document.documentElement);
  const head = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  head.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  head.setAttribute("width", String(width));
  head.setAttribute("height", String(height + 32));
  head.setAttribute("viewBox", `0 0 ${width} ${height + 32}`);
  head.append(
    shape("rect", { width, height: height + 32, fill: page.getPropertyValue("--surface").trim() }),
    shape(
      "text",
      { x: 8, y: 21, fill: page.getPropertyValue("--ink").trim(), "font-family": "sans-serif", "font-size": 15, "font-weight": 600 },
      title,
    ),
  );
  copy.setAttribute("y", "32");
  copy.removeAttribute("style");
  copy.removeAttribute("class");
  head.append(copy);
  return { svg: new XMLSerializer().serializeToString(head), width, height: height + 32 };
}

function shape(tag: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.textContent = text;
  return element;
}

/** The same as a picture, twice as fine as the screen. */
export async function toPng({ svg, width, height }: ReturnType<typeof toSvg>): Promise<Blob> {
  const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [width * 2, height * 2];
    canvas.getContext("2d")?.drawImage(image, 0, 0, width * 2, height * 2);
    return await new Promise((resolve, reject) =>
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error(texts.panel.notEncoded))), "image/png"),
    );
  } finally {
    URL.revokeObjectURL(url);
  }
}
