/** JSON text as a value that becomes the same text again: a number that JavaScript would round keeps its digits. For what is only sent on, not computed with. */
export function parseExactJson(json: string): unknown {
  if (!/\d{16}|\d\.\d{15}/.test(json)) return JSON.parse(json);
  return JSON.parse(json, keepDigits as Parameters<typeof JSON.parse>[1]);
}

function keepDigits(_key: string, value: unknown, { source }: { source?: string }): unknown {
  if (typeof value !== "number" || source === undefined || JSON.stringify(value) === source) return value;
  return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(source);
}
