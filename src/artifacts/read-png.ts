import { crc32, inflateSync } from "node:zlib";

/** `blank`: less than 0.1 % of the pixels differ from the colour of the border. */
export type PngFindings = { ok: true; width: number; height: number; blank: boolean } | { ok: false; why: string };

const MAX_PIXELS = 50_000_000;
const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
/** By the colour type in the header. */
const channelsByColourType: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };
const BLANK_SHARE = 0.001;

interface Header {
  readonly width: number;
  readonly height: number;
  readonly channels: number;
}

/** Decodes an untrusted PNG. Checks its dimensions before inflating anything, and caps the inflated size at what they require. */
export function readPng(bytes: Buffer): PngFindings {
  if (bytes.length < 57 || !bytes.subarray(0, 8).equals(SIGNATURE)) return { ok: false, why: "is not a PNG" };
  const chunks = readChunks(bytes);
  if (chunks === null) return { ok: false, why: "is a damaged PNG" };
  const header = readHeader(chunks[0]);
  if (typeof header === "string") return { ok: false, why: header };
  const pixels = inflate(chunks, header);
  if (pixels === null) return { ok: false, why: "is a PNG that cannot be decoded" };
  return { ok: true, width: header.width, height: header.height, blank: isBlank(pixels, header) };
}

interface Chunk {
  readonly type: string;
  readonly data: Buffer;
}

function readChunks(bytes: Buffer): Chunk[] | null {
  const chunks: Chunk[] = [];
  let at = SIGNATURE.length;
  while (at + 12 <= bytes.length) {
    const length = bytes.readUInt32BE(at);
    if (at + 12 + length > bytes.length) return null;
    const type = bytes.toString("latin1", at + 4, at + 8);
    if (crc32(bytes.subarray(at + 4, at + 8 + length)) !== bytes.readUInt32BE(at + 8 + length)) return null;
    chunks.push({ type, data: bytes.subarray(at + 8, at + 8 + length) });
    at += 12 + length;
    if (type === "IEND") return at === bytes.length ? chunks : null;
  }
  return null;
}

function readHeader(chunk: Chunk | undefined): Header | string {
  if (chunk?.type !== "IHDR" || chunk.data.length !== 13) return "is a PNG without a header";
  const [width, height] = [chunk.data.readUInt32BE(0), chunk.data.readUInt32BE(4)];
  const [depth, colour, , , interlace] = chunk.data.subarray(8);
  if (width === 0 || height === 0 || width * height > MAX_PIXELS)
    return `has ${width} x ${height} pixels, at most ${MAX_PIXELS} pixels are allowed`;
  const channels = channelsByColourType[colour!];
  if (depth !== 8 || interlace !== 0 || channels === undefined) return "is a PNG of a kind that save_figure does not write";
  return { width, height, channels };
}

/** The inflated lines with their filters undone; null if that fails. */
function inflate(chunks: readonly Chunk[], header: Header): Buffer | null {
  const size = header.height * (1 + header.width * header.channels);
  const deflated = Buffer.concat(chunks.filter((chunk) => chunk.type === "IDAT").map((chunk) => chunk.data));
  try {
    // One byte more than fits, so that zlib needs one buffer and no copy of up to 200 MB.
    const lines = inflateSync(deflated, { maxOutputLength: size, chunkSize: Math.max(64, size + 1) });
    return lines.length === size && unfilter(lines, header) ? lines : null;
  } catch {
    return null;
  }
}

/** Undoes the line filters in place. The first byte of each line remains its filter. Returns false for an unknown filter. */
function unfilter(lines: Buffer, { width, height, channels }: Header): boolean {
  const stride = width * channels;
  let above: Buffer = Buffer.alloc(stride);
  for (let y = 0; y < height; y += 1) {
    const start = y * (stride + 1);
    const line = lines.subarray(start + 1, start + 1 + stride);
    const undo = filters[lines[start]!];
    if (undo === undefined) return false;
    undo({ line, above, channels });
    above = line;
  }
  return true;
}

interface Line {
  readonly line: Buffer;
  readonly above: Buffer;
  readonly channels: number;
}

/** By filter number: none, sub, up, average, Paeth. Each has its own loop because an image has millions of bytes. */
const filters: readonly ((line: Line) => void)[] = [
  () => {},
  ({ line, channels }) => {
    for (let x = channels; x < line.length; x += 1) line[x]! += line[x - channels]!;
  },
  ({ line, above }) => {
    for (let x = 0; x < line.length; x += 1) line[x]! += above[x]!;
  },
  ({ line, above, channels }) => {
    for (let x = 0; x < line.length; x += 1) line[x]! += ((x < channels ? 0 : line[x - channels]!) + above[x]!) >> 1;
  },
  ({ line, above, channels }) => {
    for (let x = 0; x < line.length; x += 1) {
      const hasLeft = x >= channels;
      line[x]! += paeth(hasLeft ? line[x - channels]! : 0, above[x]!, hasLeft ? above[x - channels]! : 0);
    }
  },
];

function paeth(left: number, up: number, corner: number): number {
  const byLeft = Math.abs(up - corner);
  const byUp = Math.abs(left - corner);
  const byCorner = Math.abs(left + up - 2 * corner);
  if (byLeft <= byUp && byLeft <= byCorner) return left;
  return byUp <= byCorner ? up : corner;
}

/** Takes the first pixel as the colour of the border. `lines` have their filter before the pixels. */
function isBlank(lines: Buffer, { width, height, channels }: Header): boolean {
  const allowed = width * height * BLANK_SHARE;
  const border = lines.subarray(1, 1 + channels);
  let differing = 0;
  for (let y = 0; y < height; y += 1) {
    const start = 1 + y * (width * channels + 1);
    for (let at = start; at < start + width * channels; at += channels) {
      for (let channel = 0; channel < channels; channel += 1) {
        if (lines[at + channel] !== border[channel]) {
          differing += 1;
          break;
        }
      }
    }
    if (differing > allowed) return false;
  }
  return true;
}
