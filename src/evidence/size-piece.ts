/** Units of UTF-16 that a piece may have: few enough to stay in a cache of the processor. */
export const MAX_UNITS = 32_769;

/**
 * The size of a text as UTF-8, or -1 where it has halves of characters, which UTF-8 cannot hold. Eight characters at a time, which takes WebAssembly: over text
 * that is held as UTF-16, the language's own two (`Buffer.byteLength`, `isWellFormed`) take twice as long as parsing it, and this a third.
 */
export function sizePiece(text: string): number {
  const stop = START + memory.write(text, START, "utf16le");
  memory.fill(0, stop, stop + PADDING);
  const more = countMore(START - UNIT, stop);
  return more === -1 ? -1 : text.length + more;
}

/** Whether each character is a byte of UTF-8. For text that is held as bytes this takes half as long as its size; for other text far longer. */
export function isAsciiPiece(text: string): boolean {
  return memory.write(text, START, "utf8") === text.length;
}

const UNIT = 2;
const VECTOR = 16;
/** Vectors that are looked at together, with the unit before them. */
const GROUP = 4;
/** Zeros around the text are characters of one byte, which change nothing. */
const START = VECTOR;
const PADDING = 2 * GROUP * VECTOR;
const PAGES = 2;

/** The instructions that are needed. Those that begin with 0xfd are for vectors, here of eight units; of a comparison each unit is -1 where it holds, else 0. */
const get = (local: number): number[] => [0x20, local];
const set = (local: number): number[] => [0x21, local];
const number = (value: number): number[] => [0x41, ...toSigned(value)];
const plus = [0x6a];
const isLess = [0x49];
const loop = [0x03, 0x40];
const repeatIf = [0x0d, 0];
const when = [0x04, 0x40];
const choose = [0x04, 0x7f];
const otherwise = [0x05];
const end = [0x0b];
const load = (offset: number): number[] => [0xfd, 0x00, 0x01, offset];
const spread = [0xfd, 0x10];
const equals = [0xfd, 0x2d];
const isAtLeast = [0xfd, 0x36];
const and = [0xfd, 0x4e];
const or = [0xfd, 0x50];
const differs = [0xfd, 0x51];
const isSomewhere = [0xfd, 0x53];
const addUnits = [0xfd, 0x8e, 0x01];
const subtractUnits = [0xfd, 0x91, 0x01];
const addPairs = [0xfd, 0x7f];
const lane = (index: number): number[] => [0xfd, 0x1b, index];

/** The two parameters, `before` being the address of the unit before the group; then vectors, the last five with the same number in each unit. */
const [before, stop, more, broken, any, low, v0, v1, v2, v3, x80, x800, xfc00, xd800, xdc00] = [
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
] as const;
const vectors = [v0, v1, v2, v3];
const numbers = { [x80]: 0x80, [x800]: 0x800, [xfc00]: 0xfc00, [xd800]: 0xd800, [xdc00]: 0xdc00 };
const LOCALS = 13;

const setNumbers = Object.entries(numbers).flatMap(([local, value]) => [...number(value), ...spread, ...set(Number(local))]);

const loadGroup = [
  ...[...get(before), ...load(0), ...set(any)],
  ...vectors.flatMap((vector, index) => [
    ...[...get(before), ...load(UNIT + index * VECTOR), ...set(vector)],
    ...[...get(any), ...get(vector), ...or, ...set(any)],
  ]),
];

/** One byte more from 0x80 on. */
const countTwoBytes = [
  ...get(more),
  ...vectors.flatMap((vector, index) => [...get(vector), ...get(x80), ...isAtLeast, ...(index === 0 ? [] : addUnits)]),
  ...[...subtractUnits, ...set(more)],
];

/** And one more from 0x800 on; but a character of two halves has four bytes, and its second half must follow a first one. */
const countThreeBytes = vectors.flatMap((vector, index) => [
  ...[...get(more), ...get(vector), ...get(x800), ...isAtLeast, ...subtractUnits, ...set(more)],
  ...[...get(vector), ...get(xfc00), ...and, ...get(xdc00), ...equals, ...set(low)],
  ...[...get(more), ...get(low), ...addUnits, ...get(low), ...addUnits, ...set(more)],
  ...[...get(before), ...load(index * VECTOR), ...get(xfc00), ...and, ...get(xd800), ...equals],
  ...[...get(low), ...differs, ...get(broken), ...or, ...set(broken)],
]);

const body = [
  ...setNumbers,
  ...loop,
  ...loadGroup,
  ...countTwoBytes,
  ...[...get(any), ...get(x800), ...isAtLeast, ...isSomewhere, ...when],
  ...countThreeBytes,
  ...end,
  ...[...get(before), ...number(GROUP * VECTOR), ...plus, ...set(before)],
  ...[...get(before), ...get(stop), ...isLess, ...repeatIf],
  ...end,
  ...[...get(broken), ...isSomewhere, ...choose, ...number(-1), ...otherwise],
  ...[...get(more), ...addPairs, ...set(more)],
  ...[0, 1, 2, 3].flatMap((index) => [...get(more), ...lane(index)]),
  ...[...plus, ...plus, ...plus],
  ...[...end, ...end],
];

const I32 = 0x7f;
const V128 = 0x7b;
const section = (id: number, content: readonly number[]): number[] => [id, ...toUnsigned(content.length), ...content];
const code = [1, LOCALS, V128, ...body];
const program = Uint8Array.from([
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0], // "\0asm", version 1
  ...section(1, [1, 0x60, 2, I32, I32, 1, I32]), // a function of two numbers that gives one
  ...section(3, [1, 0]),
  ...section(5, [1, 1, PAGES, PAGES]), // memory
  ...section(7, [2, 1, 0x6d, 2, 0, 1, 0x66, 0, 0]), // called "m" and "f"
  ...section(10, [1, ...toUnsigned(code.length), ...code]),
]);

/** Made once, because each reserves address space. What is in its memory means nothing between calls, but for the zeros at the beginning. */
const { m, f: countMore } = instantiate(program);
const memory = Buffer.from(m.buffer);

interface Exports {
  readonly m: { readonly buffer: ArrayBuffer };
  readonly f: (before: number, stop: number) => number;
}

function instantiate(bytes: Uint8Array): Exports {
  const { WebAssembly } = globalThis as unknown as {
    WebAssembly: { Module: new (bytes: Uint8Array) => object; Instance: new (module: object) => { exports: unknown } };
  };
  return new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports as Exports;
}

/** Numbers as WebAssembly has them: seven bits a byte, the lowest first. */
function toUnsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...toUnsigned(value >>> 7)];
}

function toSigned(value: number): number[] {
  return value >= -0x40 && value < 0x40 ? [value & 0x7f] : [(value & 0x7f) | 0x80, ...toSigned(value >> 7)];
}
