import { answerTablePython } from "./answer-table-python.ts";
import { readTablePython } from "./read-table-python.ts";

/** One question to a table in its sandbox. */
export type TableQuestion =
  | { readonly ask: "schema" }
  | { readonly ask: "csv"; readonly offset: number; readonly maxBytes: number }
  | {
      readonly ask: "page";
      readonly offset: number;
      readonly limit: number;
      readonly maxBytes: number;
      readonly maxCellCharacters: number;
      readonly records: boolean;
      readonly columns?: readonly string[] | undefined;
      readonly filter?: readonly { readonly column: string; readonly op: string; readonly value?: unknown }[] | undefined;
      readonly search?: string | undefined;
      readonly sort?: readonly { readonly column: string; readonly descending?: boolean | undefined }[] | undefined;
    };

export interface TablePlace {
  readonly alias: string;
  /** Keys from the root of the value to its rows. */
  readonly path: readonly string[];
}

/** A cell that answers a question; it parses the table first when this sandbox has not done so yet. The answer is a text that is JSON itself. */
export function toCode({ alias, path }: TablePlace, question: TableQuestion): string {
  const name = `_sluice_table_of_${alias}`;
  return `
try:
    ${name}
except NameError:
${indent(readTablePython + answerTablePython)}
    ${name} = _open_table(${toPython(alias)}, ${toPython(path)})
set_result(${name}.answer(${toPython(question)}))
`;
}

/** As JSON in ASCII inside of a Python string: it means the same to both, whatever is in it. */
function toPython(value: unknown): string {
  const json = JSON.stringify(value).replaceAll(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return `__import__("json").loads(${JSON.stringify(json)})`;
}

function indent(code: string): string {
  return code.replaceAll(/^(?=.)/gm, "    ");
}
