/** The part of a syntax tree node that we use. */
interface Node {
  type: string;
  tagName?: string;
  properties?: Record<string, unknown>;
  children?: Node[];
  position?: { start: { offset?: number }; end: { offset?: number } };
}

export interface Mention {
  readonly index: number;
  readonly offset: number;
}

/** Finds where the text first names each artifact, such as `Figure 2`. Artifacts that it never names are left out. */
export function findMentions(text: string, names: readonly string[]): Mention[] {
  const offsets = new Map<string, number>();
  for (const { 0: name, index } of text.matchAll(/\b[a-z]+ \d+\b/gi)) {
    const key = name.toLowerCase();
    if (!offsets.has(key)) offsets.set(key, index);
  }
  return names.flatMap((name, index) => {
    const offset = offsets.get(name.toLowerCase());
    return offset === undefined ? [] : [{ index, offset }];
  });
}

/** A rehype plugin that inserts a placeholder for each artifact after the block that first names it. */
export function placeArtifacts(mentions: readonly Mention[]) {
  return (tree: Node): void => {
    tree.children = (tree.children ?? []).flatMap((block) => {
      const [start, end] = [block.position?.start.offset ?? 0, block.position?.end.offset ?? 0];
      const here = mentions.filter(({ offset }) => offset >= start && offset < end);
      return [
        block,
        ...here.map(({ index }): Node => ({ type: "element", tagName: "artifact-place", properties: { index }, children: [] })),
      ];
    });
  };
}
