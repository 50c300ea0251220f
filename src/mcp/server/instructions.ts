/** What a client's model is told beside the tools: the librarian's rules, and how data gets here. */
export function toInstructions(librarianPrompt: string, { isByHandle }: { isByHandle: boolean }): string {
  const session = isByHandle
    ? "Each result has a session. Pass it with the next call to keep aliases and variables; without it a call has a sandbox of its own."
    : "Aliases and variables live as long as this connection; a sandbox that is not used for a while is freed, and the next answer says so.";
  return `${librarianPrompt}

Here: list_data shows the data there is, with columns; store_data keeps JSON or CSV under a name; read_data pages through an alias. execute fetches with backend tools. ${session}
A failure is a v1 envelope: do what its hints say; get_envelope_contract lists the codes.`;
}
