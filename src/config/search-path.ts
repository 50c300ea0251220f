/** Where programs of the machine are looked for. */
export function searchPath(environment: Readonly<Record<string, string | undefined>> = process.env): string {
  return environment["PATH"] || "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
}
