/** What a client's model is told beside the tools: the librarian's rules, and how data gets here. */
export function toInstructions(librarianPrompt: string, { isByHandle }: { isByHandle: boolean }): string {
  const session = isByHandle
    ? "Pass the session of a result with the next call: without it a call has a sandbox of its own, and does not know your aliases."
    : "Aliases and variables live on; a sandbox that is not used for a while is freed, and the next answer says so.";
  return `${librarianPrompt}

Here: list_data shows what data there is, store_data keeps JSON or CSV under a name, execute fetches with backend tools. ${session}
A failure is an error envelope: do what its hints say.`;
}
