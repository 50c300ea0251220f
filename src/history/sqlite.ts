import type * as Sqlite from "node:sqlite";

/** Looked up when this runs rather than imported: a Node.js without it then gets as far as being told that it is too old, by what every entry imports first. */
export const sqlite: typeof Sqlite = process.getBuiltinModule("node:sqlite");
