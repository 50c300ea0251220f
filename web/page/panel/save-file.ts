/** Starts a download in the browser. */
export function saveFile(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Turns a title into a safe file name. */
export function fileName(title: string, ending: string): string {
  const stem = title
    .normalize("NFKD")
    .replaceAll(/[^\w]+/g, "-")
    .replaceAll(/^-|-$/g, "")
    .slice(0, 60)
    .toLowerCase();
  return `${stem === "" ? "sluice" : stem}.${ending}`;
}
