/** Waits until the text is really out: a pipe may take less than all of it at once. */
export async function print(text: string): Promise<void> {
  await new Promise<void>((resolve, reject) => process.stdout.write(text, (error) => (error ? reject(error) : resolve())));
}
