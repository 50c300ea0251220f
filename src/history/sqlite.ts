/** Looked up when it is evaluated rather than imported: a Node.js without it is then told that it is too old, which is the first thing every entry does. */
export const sqlite: typeof import("node:sqlite") = process.getBuiltinModule("node:sqlite");
