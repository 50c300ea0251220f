/** Whether the value at a path is told in confidence whatever it is: headers, variables of servers, keys, hashes of tokens, what rides for an identity. */
export function isSecretPath([top, second, third, fourth, fifth]: readonly PropertyKey[]): boolean {
  if (top === "mcpServers") return (third === "headers" || third === "env") && fourth !== undefined;
  if (top === "models") return third === "apiKey" || (third === "headers" && fourth !== undefined);
  if (top === "auth") return second === "tokens" && fourth === "sha256";
  return top === "session" && third === "choices" && fifth === "value";
}
