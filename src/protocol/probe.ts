import { escapeControls } from "../text/json.ts";

/**
 * A probe is one structured log line: `[python-sandbox-latency-probe] event=… name=value …`. Strings are JSON strings; numbers, booleans and null are
 * written as in JSON. `parseProbe` reads a line back.
 */
export type ProbeValue = string | number | boolean | null | undefined;
export type ProbeSink = (line: string) => void;

export function formatProbe(source: string, event: string, fields: Readonly<Record<string, ProbeValue>>): string {
  const parts = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${escapeControls(JSON.stringify(value))}`);
  return [`[${source}]`, `event=${event}`, ...parts].join(" ");
}

export function parseProbe(line: string): { source: string; fields: Record<string, ProbeValue> } | null {
  const head = /^\[([\w-]+)\] /.exec(line);
  if (head === null) return null;
  const fields: Record<string, ProbeValue> = {};
  for (const [, name, value] of line.slice(head[0].length).matchAll(/(?:^| )(\w+)=("(?:[^"\\]|\\.)*"|\S+)/g)) {
    try {
      fields[name!] = JSON.parse(value!) as ProbeValue;
    } catch {
      fields[name!] = value!;
    }
  }
  return { source: head[1]!, fields };
}
