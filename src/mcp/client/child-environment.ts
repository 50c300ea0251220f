import type { StdioServerEntry } from "./contract.ts";

/** What every child gets if the host has it: enough to find programs, a home and a place for temporary files. Keys, tokens and proxies are not here. */
const inheritedNames: readonly string[] = [
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "SHELL",
  "LANG",
  "LC_ALL",
  "LC_CTYPE",
  "TERM",
  "TMPDIR",
  "TZ",
];

export function createChildEnvironment(
  host: Readonly<Record<string, string | undefined>>,
  named: StdioServerEntry["env"],
): Record<string, string> {
  const inherited = inheritedNames.flatMap((name) => {
    const value = host[name];
    return value === undefined || value.startsWith("()") ? [] : [[name, value] as const]; // "()": an exported shell function
  });
  return { ...Object.fromEntries(inherited), ...named };
}
