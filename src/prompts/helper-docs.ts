import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";

/** A helper of the library in the sandbox, as its own source tells it. */
export interface HelperDoc {
  readonly name: string;
  readonly signature: string;
  readonly summary: string;
}

const directory = path.join(import.meta.dirname, "..", "..", "python", "sluice");

/** The public helpers with the first sentence of their docstrings: one source for the prompt, the tool's description and the checks. */
export function readHelperDocs(): HelperDoc[] {
  const exported = /__all__ = \[([^\]]*)\]/.exec(readFileSync(path.join(directory, "__init__.py"), "utf8"))?.[1] ?? "";
  const names = [...exported.matchAll(/"(\w+)"/g)].map(([, name]) => name!);
  const files = readdirSync(directory).filter((file) => file.endsWith(".py"));
  const sources = files.map((file) => readFileSync(path.join(directory, file), "utf8"));
  return names.map((name) => readOne(name, sources));
}

function readOne(name: string, sources: readonly string[]): HelperDoc {
  const pattern = new RegExp(`^def ${name}\\(([\\s\\S]*?)\\)(?: -> [^:]+)?:\\n\\s+r?"""([\\s\\S]*?)(?:\\n\\n|""")`, "m");
  for (const source of sources) {
    const found = pattern.exec(source);
    if (found === null) continue;
    return { name, signature: `${name}(${toParameters(found[1]!)})`, summary: found[2]!.replaceAll(/\s+/g, " ").trim() };
  }
  return { name, signature: `${name}(…)`, summary: "" };
}

/** Parameter names and defaults, without their types. */
function toParameters(text: string): string {
  const parts: string[] = [];
  let depth = 0;
  let current = "";
  for (const character of text.replaceAll(/\s+/g, " ")) {
    if ("[({".includes(character)) depth += 1;
    if ("])}".includes(character)) depth -= 1;
    if (character === "," && depth === 0) {
      parts.push(current);
      current = "";
    } else current += character;
  }
  if (current.trim() !== "") parts.push(current);
  return parts
    .map((part) =>
      part
        .trim()
        .replace(/^(\*{0,2}\w+): .*?(?:( = )(.*))?$/, (_, name: string, equals?: string, value?: string) =>
          equals ? `${name}=${value!}` : name,
        ),
    )
    .join(", ");
}
