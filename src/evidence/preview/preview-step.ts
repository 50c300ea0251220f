import { aliasListNote } from "../../prompts/result-notes.ts";
import type { Preview, StepPreviewOptions } from "../evidence-store.ts";
import { buildPreview, buildSmallest, MIN_PREVIEW_BYTES, previewDetails, type Detail, type PreviewSource } from "./build-preview.ts";

/** The least detail to keep in each pass over the outputs: the first pass drops rows, the second schemas, the third counts. */
const floors: readonly Detail[] = ["schema", "counts", "alias"];

/**
 * Previews of the outputs of one step, oldest first, that together fit the budget. Each pass shrinks the oldest previews first, and only as far as needed.
 * If the aliases alone do not fit, one preview lists the aliases of the oldest outputs and counts those that it cannot list.
 */
export function previewStep(sources: readonly PreviewSource[], { maxBytes, maxBytesPerOutput }: Required<StepPreviewOptions>): Preview[] {
  const previews = sources.map((source) => buildPreview(source, maxBytesPerOutput));
  let excess = previews.reduce((sum, { bytes }) => sum + bytes, 0) - maxBytes;
  for (const floor of floors) {
    for (let index = 0; index < sources.length && excess > 0; index++) {
      const before = previews[index]!;
      const after = shrink(sources[index]!, { before, floor, excess });
      previews[index] = after;
      excess -= before.bytes - after.bytes;
    }
  }
  return excess > 0 ? listOldest(sources, previews, maxBytes) : previews;
}

/** Replaces as few of the oldest previews as possible with one list; all of them if nothing less fits. */
function listOldest(sources: readonly PreviewSource[], previews: readonly Preview[], maxBytes: number): Preview[] {
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

/** The largest preview that removes the excess; if it would have less detail than `floor`, the smallest one with that detail. */
function shrink(source: PreviewSource, { before, floor, excess }: { before: Preview; floor: Detail; excess: number }): Preview {
  const wanted = before.bytes - excess;
  const fitting = wanted < MIN_PREVIEW_BYTES ? null : buildPreview(source, wanted);
  if (fitting !== null && rank(fitting) <= previewDetails.indexOf(floor)) return fitting;
  const smallest = buildSmallest(source, floor);
  return smallest !== null && smallest.bytes < before.bytes ? smallest : before;
}

function rank({ detail }: Preview): number {
  return previewDetails.indexOf(detail as Detail);
}

/** One preview for many outputs: the aliases of as many of the newest as fit. Aliases are ASCII and need no escapes. */
function listAliases(sources: readonly PreviewSource[], maxBytes: number): { preview: Preview; notListed: number } {
  const aliases: string[] = [];
  let left = maxBytes - toJson(sources, []).length;
  for (const { item } of sources.toReversed()) {
    left -= item.alias.length + 3;
    if (left < 0) break;
    aliases.push(item.alias);
  }
  const json = toJson(sources, aliases.toReversed());
  return { preview: { alias: null, json, bytes: json.length, detail: "list" }, notListed: sources.length - aliases.length };
}

function toJson(sources: readonly PreviewSource[], aliases: readonly string[]): string {
  const notListed = sources.length - aliases.length;
  return JSON.stringify({
    outputs: sources.length,
    bytes: sources.reduce((sum, { item }) => sum + item.bytes, 0),
    aliases,
    ...(notListed > 0 ? { aliasesNotShown: notListed } : {}),
    note: aliasListNote(notListed === 0),
  });
}
