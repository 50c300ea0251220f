/** As much of a syntax tree as is looked at. */
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

/** Where the text first speaks of each of them; those it never names are not there. */
export function findMentions(text: string, names: readonly string[]): Mention[] {
  return names.flatMap((name, index) => {
    const match = new RegExp(String.raw`\b${name}\b`, "i").exec(text);
    return match ? [{ index, offset: match.index }] : [];
  });
}

/** A rehype plugin: puts a place for each artifact behind the block that first names it. */
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
