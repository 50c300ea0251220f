/** The server as the client reached it; its Host was checked. */
export function originOf(request: Request): string {
  return `${new URL(request.url).protocol}//${request.headers.get("host")}`;
}
