import type { ClipNote } from "../text/clip-text.ts";

/** Notes in place of text that was shortened because the model's context is full, and in place of results that do not exist. */

export const omittedNote: ClipNote = (characters) => `… [${characters} characters omitted to save space]`;

export const omittedArgumentsNote = (characters: number): string => `${characters} characters of arguments omitted to save space`;

export const omittedResultNote = "Omitted to save space.";

export const shortenedCellNote = "Shortened to save space. The full result is available in Python under its alias.";

export const brokenOffNote = "The call did not run: your message ended before it was complete.";

export const turnEndedNote = "The turn has ended.";
