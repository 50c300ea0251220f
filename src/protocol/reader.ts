import { z } from "zod";

const encoding = z.enum(["utf-8", "utf-16le", "utf-16be", "windows-1252"]);
/** `none`: the file has one column. */
const delimiter = z.enum([",", ";", "\t", "|", "none"]);
const decimal = z.enum([".", ","]);

/** How to read a CSV-like file. What is not given is inferred from the file. */
export const readerOptionsSchema = z.strictObject({
  encoding: encoding.optional(),
  delimiter: delimiter.optional(),
  decimal: decimal.optional(),
});

export type ReaderOptions = Readonly<z.infer<typeof readerOptionsSchema>>;

function option<Value extends z.ZodType>(value: Value) {
  return z.strictObject({ value, from: z.enum(["given", "inferred"]) });
}

const readerNote = z.strictObject({
  code: z.string().max(100),
  column: z.string().optional(),
  message: z.string().max(10_000),
  count: z.int().nonnegative().optional(),
});

/** How a CSV-like file was read, and everything about it that was not obvious. */
export const readingSchema = z.strictObject({
  encoding: option(encoding),
  delimiter: option(delimiter),
  decimal: option(decimal),
  notes: z.array(readerNote).max(100),
});

export type Reading = z.infer<typeof readingSchema>;
