import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";

/** The libraries that cells use, named with their versions. Their dependencies are left out: they would add about a hundred tokens to every prompt. */
const mainLibraries = ["pandas", "numpy", "scipy", "matplotlib", "statsmodels", "pyarrow", "openpyxl"];

/** Returns what a model must know to use the interpreter. The rules hold for every source of data, so it names none. */
export function librarianPrompt({ packages, helpers }: { packages: Record<string, string>; helpers: readonly HelperDoc[] }): string {
  const libraries = mainLibraries.filter((name) => name in packages).map((name) => `${name} ${packages[name]}`);
  return `You derive figures from data that tools have fetched.

Data flows one way: tools fetch, Python derives. Python has no network and no package installer, so no requests or urllib. When data is missing, call a tool, or say that it is missing.
Every tool output is stored in full under its alias (_contextAlias). You read a preview; in Python the alias is a global, and inputs["alias"], with every row; inputs.text("alias") is the original text with every digit. Never retype rows into code.

Python 3.13 with ${libraries.join(", ")}, their dependencies, and the standard library; nothing else can be imported. Available without import: pd, np, plt, sm, and
${helpers.map(({ signature, summary }) => `- ${signature}: ${summary}`).join("\n")}

Rules:
- Every code_interpreter call declares postProcessingContract: operation, reason, inputAliases (at least one), expectedArtifacts (["image"] with save_figure, ["chart"] with render_chart, [] for numbers only). Emit exactly what is declared.
- End with set_result(value). Variables persist within the turn. A failed cell changes no variables, so fix it with python_code_edit.
- Compute a total, net change, flow, threshold or regime over the whole population that was asked for. Top-N and selections are display, never the metric.
- Levels (balances, reserves, holdings, open interest): a positive change is flow in, a negative one flow out. Flip the sign only for a source that is already a flow and says the opposite.
- When members enter, leave or pause, use derive_change_series: headline stable_entities_change, and show coverage_change as an annotation with its coverage_events. It is never a flow bar and never dropped.
- Flooring timestamps creates duplicate buckets: aggregate them by an explicit rule (align_timeseries, safe_merge_timeseries). Do not hide them with drop_duplicates or dropna: a null placeholder can precede the real sample.
- Report what is missing: gaps, low coverage, failed steps.`;
}

/** A helper of the Python library in the sandbox, as its source describes it. */
export interface HelperDoc {
  readonly name: string;
  readonly signature: string;
  readonly summary: string;
}

const helperDirectory = path.join(import.meta.dirname, "..", "..", "python", "sluice");

/** Reads the public helpers and the first paragraph of their docstrings from the Python sources. */
export function readHelperDocs(): HelperDoc[] {
  const exported = /__all__ = \[([^\][]*)\]/.exec(readFileSync(path.join(helperDirectory, "__init__.py"), "utf8"))?.[1] ?? "";
  const names = [...exported.matchAll(/"(\w+)"/g)].map(([, name]) => name!);
  const files = readdirSync(helperDirectory).filter((file) => file.endsWith(".py"));
  const sources = files.map((file) => readFileSync(path.join(helperDirectory, file), "utf8"));
  return names.map((name) => readHelperDoc(name, sources));
}

function readHelperDoc(name: string, sources: readonly string[]): HelperDoc {
  const start = `\ndef ${name}(`;
  const source = sources.find((text) => text.includes(start));
  if (source === undefined) return { name, signature: `${name}(…)`, summary: "" };
  const [head = "", docstring = ""] = source.slice(source.indexOf(start) + start.length).split('"""', 2);
  const parameters = head.slice(0, head.lastIndexOf(")"));
  const [summary = ""] = docstring.split("\n\n", 1);
  return { name, signature: `${name}(${withoutTypes(parameters)})`, summary: summary.replaceAll(/\s+/g, " ").trim() };
}

/** Reduces a parameter list to names and defaults. */
function withoutTypes(parameters: string): string {
  const parts: string[] = [];
  let depth = 0;
  let current = "";
  for (const character of parameters.replaceAll(/\s+/g, " ")) {
    if ("[({".includes(character)) depth += 1;
    if ("])}".includes(character)) depth -= 1;
    if (character === "," && depth === 0) {
      parts.push(current);
      current = "";
    } else current += character;
  }
  if (current.trim() !== "") parts.push(current);
  return parts.map((part) => withoutType(part.trim())).join(", ");
}

function withoutType(parameter: string): string {
  const colon = parameter.indexOf(": ");
  if (colon < 0) return parameter;
  const equals = parameter.indexOf(" = ", colon);
  return parameter.slice(0, colon) + (equals < 0 ? "" : `=${parameter.slice(equals + 3)}`);
}
