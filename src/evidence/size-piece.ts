/** Characters that a piece may have: few enough to stay in a cache of the processor. */
export const MAX_PIECE = 32_769;

/**
 * The size of a text as UTF-8, or -1 where it has halves of characters, which UTF-8 cannot hold. Eight characters at a time, which takes WebAssembly: over text
 * that is held as UTF-16, the language's own two (`Buffer.byteLength`, `isWellFormed`) take twice as long as parsing it, and this a third.
 */
export function sizePiece(text: string): number {
  const more = countUtf16(START - UNIT, write(text, "utf16le"));
  return more === -1 ? -1 : text.length + more;
}

/** The same of a text that has no character past U+00FF. */
export function sizeLatin1Piece(text: string): number {
  return text.length + countLatin1(START, write(text, "latin1"));
}

const UNIT = 2;
const VECTOR = 16;
/** Vectors that are looked at together. */
const GROUP = 4;
const START = VECTOR;
const PAGES = 2;

/** Gives the end. Zeros around the text are characters of one byte, which change nothing. */
function write(text: string, encoding: "utf16le" | "latin1"): number {
  const stop = START + memory.write(text, START, encoding);
  memory.fill(0, stop, stop + 2 * GROUP * VECTOR);
  return stop;
}

/** The instructions that are needed. Those that begin with 0xfd are for vectors, here of eight units; of a comparison each unit is -1 where it holds, else 0. */
const get = (local: number): number[] => [0x20, local];
const set = (local: number): number[] => [0x21, local];
const number = (value: number): number[] => [0x41, ...toSigned(value)];
const plus = [0x6a];
const isLess = [0x49];
const countBits = [0x69];
const loop = [0x03, 0x40];
const repeatIf = [0x0d, 0];
const when = [0x04, 0x40];
const choose = [0x04, 0x7f];
const otherwise = [0x05];
const end = [0x0b];
const load = (offset: number): number[] => [0xfd, 0x00, 0x00, offset];
const inEachUnit = [0xfd, 0x10];
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
const highBits = [0xfd, 0x64];

/** Of both functions: where to begin, where the text ends, and the bytes beyond one a character. */
const [at, stop, more] = [0, 1, 2] as const;
const goOn = [...get(at), ...number(GROUP * VECTOR), ...plus, ...set(at), ...get(at), ...get(stop), ...isLess, ...repeatIf];
const inGroup = [0, 1, 2, 3] as const;

/** From 0x80 on a character has a byte more. */
const latin1 = [
  ...loop,
  ...[...get(more), ...inGroup.flatMap((index) => [...get(at), ...load(index * VECTOR), ...highBits, ...countBits, ...plus]), ...set(more)],
  ...goOn,
  ...end,
  ...[...get(more), ...end],
];

/** In UTF-16 `at` is the unit before the group, so that each unit is seen with the one before it. The last six have the same number in each unit. */
const [broken, low, v0, v1, v2, v3, x80, x800, xd800, xdc00, xf800, xfc00] = [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14] as const;
const vectors = [v0, v1, v2, v3];
const numbers = { [x80]: 0x80, [x800]: 0x800, [xd800]: 0xd800, [xdc00]: 0xdc00, [xf800]: 0xf800, [xfc00]: 0xfc00 };

const setNumbers = Object.entries(numbers).flatMap(([local, value]) => [...number(value), ...inEachUnit, ...set(Number(local))]);
const loadBefore = (index: number): number[] => [...get(at), ...load(index * VECTOR)];
const loadGroup = inGroup.flatMap((index) => [...get(at), ...load(UNIT + index * VECTOR), ...set(vectors[index]!)]);
const isHalf = [...get(xf800), ...and, ...get(xd800), ...equals];
const hasAny = (test: readonly number[]): number[] => [
  ...[...loadBefore(0), ...test],
  ...vectors.flatMap((vector) => [...get(vector), ...test, ...or]),
];

/** One byte more for each unit from a number on. */
const countFrom = (least: number): number[] => [
  ...get(more),
  ...[...get(v0), ...get(least), ...isAtLeast],
  ...vectors.slice(1).flatMap((vector) => [...get(vector), ...get(least), ...isAtLeast, ...addUnits]),
  ...[...subtractUnits, ...set(more)],
];

/** A character of two halves has four bytes, which is two less than was counted; its second half must follow a first one. */
const countPairs = inGroup.flatMap((index) => [
  ...[...get(vectors[index]!), ...get(xfc00), ...and, ...get(xdc00), ...equals, ...set(low)],
  ...[...get(more), ...get(low), ...addUnits, ...get(low), ...addUnits, ...set(more)],
  ...[...loadBefore(index), ...get(xfc00), ...and, ...get(xd800), ...equals],
  ...[...get(low), ...differs, ...get(broken), ...or, ...set(broken)],
]);

const utf16 = [
  ...setNumbers,
  ...loop,
  ...loadGroup,
  ...countFrom(x80),
  ...[...hasAny([]), ...get(x800), ...isAtLeast, ...isSomewhere, ...when],
  ...countFrom(x800),
  ...[...hasAny(isHalf), ...isSomewhere, ...when],
  ...countPairs,
  ...[...end, ...end],
  ...goOn,
  ...end,
  ...[...get(broken), ...isSomewhere, ...choose, ...number(-1), ...otherwise],
  ...[...get(more), ...addPairs, ...set(more), ...inGroup.flatMap((index) => [...get(more), ...lane(index)]), ...plus, ...plus, ...plus],
  ...[...end, ...end],
];

const I32 = 0x7f;
const V128 = 0x7b;
const section = (id: number, ...content: readonly number[]): number[] => [id, ...sized(content)];
const program = Uint8Array.from([
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0], // "\0asm", version 1
  ...section(1, 1, 0x60, 2, I32, I32, 1, I32), // functions of two numbers that give one
  ...section(3, 2, 0, 0),
  ...section(5, 1, 1, PAGES, PAGES), // memory
  ...section(7, 3, ...named("memory"), 2, 0, ...named("countLatin1"), 0, 0, ...named("countUtf16"), 0, 1),
  ...section(10, 2, ...sized([1, 1, I32, ...latin1]), ...sized([1, 13, V128, ...utf16])),
]);

/** Made once, because each reserves address space. What is in its memory means nothing between calls, but for the zeros at the beginning. */
const { memory: own, countLatin1, countUtf16 } = instantiate(program);
const memory = Buffer.from(own.buffer);

interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly countLatin1: (at: number, stop: number) => number;
  readonly countUtf16: (at: number, stop: number) => number;
}

function instantiate(bytes: Uint8Array): Exports {
  const { WebAssembly } = globalThis as unknown as {
    WebAssembly: { Module: new (bytes: Uint8Array) => object; Instance: new (module: object) => { exports: unknown } };
  };
  return new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports as Exports;
}

function named(name: string): number[] {
  return sized([...Buffer.from(name)]);
}

function sized(content: readonly number[]): number[] {
  return [...toUnsigned(content.length), ...content];
}

/** Numbers as WebAssembly has them: seven bits a byte, the lowest first. */
function toUnsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...toUnsigned(value >>> 7)];
}

function toSigned(value: number): number[] {
  return value >= -0x40 && value < 0x40 ? [value & 0x7f] : [(value & 0x7f) | 0x80, ...toSigned(value >> 7)];
}
