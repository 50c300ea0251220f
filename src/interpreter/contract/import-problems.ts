import type { FoundImport } from "./find-imports.ts";
import { insteadOf, networkModuleOf } from "./module-advice.ts";
import { nearestName } from "../../errors/nearest-name.ts";
import { quote } from "../../errors/argument-path.ts";
import type { Problem } from "./problem.ts";
import { standardLibrary } from "./python-standard-library.ts";

const oneWay =
  "Python derives, it does not fetch: there is no network in the sandbox. Call a tool for the data; its output is then bound in Python under its alias.";
const mainLibraries = ["pandas", "numpy", "scipy", "matplotlib", "statsmodels", "pyarrow"];

/** Imports that cannot work, once a module. An import that the code guards against is left alone. */
export function importProblems(imports: readonly FoundImport[], modules: ReadonlySet<string>): Problem[] {
  const seen = new Set<string>();
  return imports.flatMap((found) => {
    if (found.guarded) return [];
    const problem = problemOf(found, modules);
    if (problem === null || seen.has(problem.issue)) return [];
    seen.add(problem.issue);
    return [{ ...problem, line: found.line, column: found.column }];
  });
}

function problemOf({ module, names, level }: FoundImport, modules: ReadonlySet<string>): Problem | null {
  const base = { path: "code", receivedType: "string" } as const;
  if (level > 0) {
    return {
      ...base,
      code: "PYTHON_MODULE_MISSING",
      issue: "A relative import: a cell is not part of a package.",
      hints: [whatIsThere(modules)],
    };
  }
  const network = networkModuleOf(module, names);
  if (network !== null) {
    return {
      ...base,
      code: "PYTHON_NETWORK_MODULE",
      issue: `The module ${network} is for the network, which Python does not have here.`,
      hints: [oneWay],
    };
  }
  const top = module.split(".")[0] ?? "";
  if (modules.has(top)) return null;
  const better = insteadOf(top);
  const near = better === null ? nearestName(top, modules) : null;
  const advice = better !== null ? ` Use ${better} instead.` : near !== null ? ` Did you mean ${quote(near)}?` : "";
  return {
    ...base,
    code: "PYTHON_MODULE_MISSING",
    issue: `The module ${top} is not in the snapshot.${advice}`,
    hints: [whatIsThere(modules)],
  };
}

function whatIsThere(modules: ReadonlySet<string>): string {
  const main = mainLibraries.filter((name) => modules.has(name));
  const others = [...modules].filter((name) => !standardLibrary.has(name) && !main.includes(name) && !name.startsWith("_")).sort();
  return `Importable are ${main.join(", ")}, the standard library of Python 3.13 without its network modules${others.length > 0 ? `, and ${others.join(", ")}` : ""}. Nothing can be installed.`;
}
