import type { Preview, PreviewDetail } from "../contract.ts";
import { buildPreview, MIN_PREVIEW_BYTES, type PreviewSource } from "./build-preview.ts";
import { listAliases } from "./list-aliases.ts";

export interface StepLimits {
  readonly maxBytes: number;
  readonly maxBytesPerOutput: number;
}

/** From most to least. */
const order: readonly PreviewDetail[] = ["whole", "rows", "schema", "counts", "alias"];
/** What is kept in each pass over the outputs: first rows go, then schemas, then counts. */
const floors: readonly PreviewDetail[] = ["schema", "counts", "alias"];

/**
 * Previews of the outputs of one step, oldest first, which together fit the budget. In each pass the oldest lose first, and no more than they must.
 * When their aliases alone are too much, the oldest share one preview that lists them, and counts those that it cannot list.
 */
export function previewStep(sources: readonly PreviewSource[], { maxBytes, maxBytesPerOutput }: StepLimits): Preview[] {
  const previews = sources.map((source) => buildPreview(source, { maxBytes: maxBytesPerOutput }));
  let excess = previews.reduce((sum, { bytes }) => sum + bytes, 0) - maxBytes;
  for (const floor of floors) {
    for (let index = 0; index < sources.length && excess > 0; index++) {
      const before = previews[index]!;
      const after = shrink(sources[index]!, { before, floor, excess });
      previews[index] = after;
      excess -= before.bytes - after.bytes;
    }
  }
  return excess > 0 ? shareOne(sources, previews, maxBytes) : previews;
}

/** As few of the oldest as must be share one; all of them when not even that is enough. */
function shareOne(sources: readonly PreviewSource[], previews: readonly Preview[], maxBytes: number): Preview[] {
  let others = previews.reduce((sum, { bytes }) => sum + bytes, 0);
  let names = 0;
  for (let shared = 1; shared < sources.length; shared++) {
    others -= previews[shared - 1]!.bytes;
    names += sources[shared - 1]!.item.alias.length + 3;
    const room = maxBytes - others;
    if (room < Math.max(names, MIN_PREVIEW_BYTES)) continue;
    const list = listAliases(sources.slice(0, shared), room);
    if (list.notListed === 0) return [list.preview, ...previews.slice(shared)];
  }
  return [listAliases(sources, maxBytes).preview];
}

/** As large as there is room for; when that would say less than the floor, the smallest that does not. */
function shrink(source: PreviewSource, { before, floor, excess }: { before: Preview; floor: PreviewDetail; excess: number }): Preview {
  const wanted = before.bytes - excess;
  const roomy = wanted < MIN_PREVIEW_BYTES ? null : buildPreview(source, { maxBytes: wanted });
  if (roomy !== null && isAtLeast(roomy, floor)) return roomy;
  const budgets = [256, 320, 384, 448, 512, 640, 768, 1024, 1536, 2048, 3072].filter((maxBytes) => maxBytes < before.bytes);
  const forms =
    floor === "alias"
      ? [buildPreview(source, { maxBytes: MIN_PREVIEW_BYTES, most: floor })]
      : budgets.map((maxBytes) => buildPreview(source, { maxBytes, most: floor }));
  const smallest = forms.find((form) => isAtLeast(form, floor));
  return smallest !== undefined && smallest.bytes < before.bytes ? smallest : before;
}

function isAtLeast({ detail }: Preview, floor: PreviewDetail): boolean {
  return order.indexOf(detail) <= order.indexOf(floor);
}
