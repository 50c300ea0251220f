import type { EngineName } from "./contract.ts";
import { isComputeModule, montyModules } from "./modules.ts";
import { findImports } from "./syntax/find-imports.ts";
import { findDecorators } from "./syntax/wrong-constructs.ts";
import type { PythonToken } from "./syntax/tokenize-python.ts";

export type EngineSetting = "auto" | EngineName;

export interface EngineChoice {
  readonly engine: EngineName;
  /** Why it is not Monty, as a sentence. */
  readonly reason?: string | undefined;
}

/**
 * Decides before anything has run. What only Monty's own parser knows (`class`, `match`, `del`, `yield`) it says when it is handed the script; nothing
 * has run then either, and `unsupportedReason` is the sentence for it.
 */
export function chooseEngine(tokens: readonly PythonToken[], setting: EngineSetting): EngineChoice {
  if (setting !== "auto") return { engine: setting };
  const missing = findImports(tokens).find(
    ({ module, isGuarded }) => !isGuarded && !montyModules.includes(module) && isComputeModule(module),
  );
  if (missing) return { engine: "cpython", reason: `Line ${missing.line} imports ${missing.module}, which Monty does not have.` };
  const [decorator] = findDecorators(tokens);
  if (decorator !== undefined) return { engine: "cpython", reason: `Line ${decorator} has a decorator, which Monty does not apply.` };
  return { engine: "monty" };
}

export function unsupportedReason({ message, line }: { readonly message: string; readonly line?: number | undefined }): string {
  return `${line === undefined ? "" : `Line ${line}: `}${message.replace(/^The monty syntax parser does not yet support /, "Monty does not support ")}.`;
}
