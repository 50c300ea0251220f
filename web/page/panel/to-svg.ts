import { texts } from "../../texts.ts";

/** Computed styles that the file keeps. */
const inlinedStyles = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-opacity",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linejoin",
  "font-family",
  "font-size",
  "font-weight",
  "text-anchor",
] as const;

const [titleHeight, rowHeight] = [30, 20];

interface Drawn {
  readonly svg: string;
  readonly width: number;
  readonly height: number;
}

/**
 * Exports a chart as a standalone SVG: title, legend or scale, drawing. Colours and fonts of the page are written into it; parts that
 * only work on the page (cursor, brush) are left out.
 */
export function toSvg(chart: Element, title: string): Drawn {
  const drawing = chart.querySelector<SVGSVGElement>(".chart-plot svg");
  if (!drawing) throw new Error(texts.panel.nothingDrawn);
  const width = Number(drawing.getAttribute("width"));
  const page = getComputedStyle(document.documentElement);
  const [ink, ground] = ["--ink", "--surface"].map((name) => page.getPropertyValue(name).trim());
  const font = { fill: ink ?? "", "font-family": "sans-serif" };
  const legend = placeInRows(legendOf(chart, font), width);
  const top = titleHeight + legend.height;
  const height = top + Number(drawing.getAttribute("height"));
  const file = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  const plot = copyWithStyles(drawing);
  plot.setAttribute("y", String(top));
  file.append(
    shape("rect", { width, height, fill: ground ?? "" }),
    shape("text", { ...font, x: 8, y: 21, "font-size": 15, "font-weight": 600 }, title),
    ...legend.shapes,
    plot,
  );
  return { svg: new XMLSerializer().serializeToString(file), width, height };
}

/** Copies a drawing with its computed styles inlined, without the parts that only work on the page. */
function copyWithStyles(drawing: SVGSVGElement): SVGSVGElement {
  const copy = drawing.cloneNode(true) as SVGSVGElement;
  const [sources, targets] = [[...drawing.querySelectorAll("*")], [...copy.querySelectorAll("*")]];
  const pageOnly = [...copy.querySelectorAll(".chart-brush, [data-hover], title:empty, desc:empty")];
  for (const [index, source] of sources.entries()) {
    const target = targets[index];
    const style = getComputedStyle(source);
    target?.removeAttribute("style");
    target?.removeAttribute("class");
    for (const name of inlinedStyles) target?.setAttribute(name, style.getPropertyValue(name));
  }
  for (const element of pageOnly) element.remove();
  copy.removeAttribute("style");
  copy.removeAttribute("class");
  return copy;
}

interface Piece {
  readonly element: SVGElement;
  readonly width: number;
  /** The next entry may start a new row. */
  readonly isLast: boolean;
}

/** Visible series with their colours; for a heatmap, its scale. */
function legendOf(chart: Element, font: Record<string, string>): Piece[] {
  const ruler = document.createElement("canvas").getContext("2d");
  if (ruler) ruler.font = `12px ${font["font-family"]}`;
  const words = (text: string, isLast: boolean): Piece => ({
    element: shape("text", { ...font, y: 14, "font-size": 12 }, text),
    width: (ruler?.measureText(text).width ?? 0) + (isLast ? 16 : 8),
    isLast,
  });
  const series = [...chart.querySelectorAll('.chart-legend [aria-pressed="true"]')].flatMap((entry): Piece[] => {
    const swatch = entry.querySelector(".chart-swatch");
    const fill = swatch ? getComputedStyle(swatch).backgroundColor : "none";
    return [
      { element: shape("rect", { y: 4, width: 11, height: 11, rx: 2, fill }), width: 17, isLast: false },
      words(entry.textContent, true),
    ];
  });
  const scale = [...(chart.querySelector(".chart-heat-scale")?.children ?? [])].map((part): Piece => {
    if (!(part instanceof SVGSVGElement)) return words(part.textContent, false);
    const copy = copyWithStyles(part);
    copy.setAttribute("y", "5");
    return { element: copy, width: Number(part.getAttribute("width")) + 8, isLast: false };
  });
  return [...series, ...scale];
}

function placeInRows(pieces: readonly Piece[], width: number): { shapes: SVGElement[]; height: number } {
  let [x, row, mayBreak] = [8, 0, false];
  const shapes = pieces.map((piece, index) => {
    const whole = piece.width + (piece.isLast ? 0 : (pieces[index + 1]?.width ?? 0));
    if (mayBreak && x + whole > width) [x, row] = [8, row + 1];
    const placed = shape("g", { transform: `translate(${x}, ${titleHeight + row * rowHeight})` });
    placed.append(piece.element);
    x += piece.width;
    mayBreak = piece.isLast;
    return placed;
  });
  return { shapes, height: pieces.length === 0 ? 0 : (row + 1) * rowHeight + 4 };
}

function shape(tag: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.textContent = text;
  return element;
}

/** Exports a chart as PNG at twice the screen resolution. */
export async function toPng({ svg, width, height }: Drawn): Promise<Blob> {
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
