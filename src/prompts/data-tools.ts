/** The descriptions of the data tools. A test limits each to 200 characters. */
export const dataToolDescriptions = {
  store_data:
    "Store inline JSON (data) or CSV text (csv) under a name. code_interpreter, render_chart and read_data can then use it by that alias.",
  list_data:
    "List every alias, including given files: source, format, bytes, rows, columns. With aliases: their full schemas (types, share of nulls, ranges).",
  read_data:
    "Read a page of rows of any alias. Filter, search and sort apply to the whole table. Returns total, matched and nextOffset. To compute, use code_interpreter.",
} as const;

export const dataParameters = {
  storeName: "The alias: a Python name that is not in use.",
  storeData: "Inline JSON: rows as a list of records, or any value.",
  storeCsv: "CSV text with a header line. Give either data or csv.",
  storeReader: "How csv is written, if it cannot be recognized: delimiter and decimal.",
  listAliases: "Return only these aliases, with full schemas. Default: all aliases, without details.",
  readAlias: "An alias of list_data, a tool output or a result.",
  readOffset: "Rows to skip: nextOffset of the previous page.",
  readLimit: (limit: number): string => `Rows to return. Default: ${limit}.`,
  readColumns: "Return only these columns, in this order.",
  readFilter: "Conditions that must all hold.",
  filterOperator: "contains and startsWith ignore case. Null cells match isNull only.",
  filterValue: "A list for in; nothing for isNull and notNull; otherwise one value.",
  readSearch: "Text to find in any cell, ignoring case.",
  readSort: "Columns to sort by. Nulls come last.",
} as const;

export const dataNotes = {
  storedAs: (alias: string): string => `In Python, the data is available as ${alias}. Name it in inputAliases.`,
  parsedJsonText: "data was JSON in a string; the parsed value was stored.",
  roundedIntegers: (count: number): string =>
    `${count} integer(s) above 2^53 may have been rounded before they arrived. Send them as strings or as csv.`,
  moreColumns: (count: number): string => `${count} more columns are not listed.`,
  fileChanged: (alias: string): string =>
    `The file of ${alias} changed on disk since you last read it. Earlier pages and results show its old content.`,
  pageCut: (returned: number, wanted: number, maxBytes: number): string =>
    `Only ${returned} of the ${wanted} requested rows fit into ${maxBytes} bytes. Continue at nextOffset, or request fewer columns.`,
  cellsCut: (count: number, maxCharacters: number): string =>
    `${count} cell(s) are longer than ${maxCharacters} characters and were shortened. Python has the full values.`,
  precisionLost: "Numbers of this output may have been rounded before Sluice received them.",
  notReadYet: (alias: string): string => `Not read yet. list_data {"aliases": ["${alias}"]} returns its columns.`,
  morePathsLeftOut: (count: number): string => `${count} more paths were left out.`,
  columnsNotShown: (count: number): string => `The columns of ${count} alias(es) are not shown. list_data {"aliases": […]} returns them.`,
  oldestNotListed: (count: number): string => `The ${count} oldest aliases are not listed, but they are still available.`,
} as const;
