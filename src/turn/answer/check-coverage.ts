import { describeUncorrectedNumbers } from "../../prompts/turn-prompts.ts";
import type { Gap } from "../../protocol/turn-result.ts";
import type { Conversation } from "../create-conversation.ts";
import { describeError } from "../describe-error.ts";
import type { Ledger } from "../ledger.ts";
import { listCoverageEvents, readSmallResults } from "./build-best-effort-terminal-outcome.ts";
import { findUncorrectedNumbers } from "./find-uncorrected-numbers.ts";
import { listShown } from "./list-shown.ts";
import { toWords } from "./to-words.ts";
import { listUncorrectedAmounts } from "./uncorrected-amounts.ts";

interface AnswerSources {
  readonly ledger: Pick<Ledger, "cells" | "artifacts">;
  readonly conversation: Conversation;
}

/**
 * Checks what an answer says about coverage. Raises the gap `coverage_events` to minor if the answer does not name the entities itself: the runtime adds
 * their events, but the text around them was written as if nothing had happened. Adds the gap `uncorrected_change` for numbers that count coverage as flow.
 */
export function checkCoverage(turn: AnswerSources, { answer, gaps }: { answer: string; gaps: readonly Gap[] }): Gap[] {
  try {
    return [...raiseUnnamedEvents(turn, answer, gaps), ...findUncorrectedChanges(turn, answer)];
  } catch (error) {
    if (gaps.some(({ code }) => code === "gaps_unknown")) return [...gaps]; // the results cannot be read, as that gap says
    const detail = `The answer could not be compared with changes of coverage: ${describeError(error)}`;
    return [...gaps, { code: "numbers_not_checked", severity: "info", detail }];
  }
}

function raiseUnnamedEvents(turn: AnswerSources, answer: string, gaps: readonly Gap[]): Gap[] {
  const { events } = listCoverageEvents(turn);
  const words = toWords(answer);
  const isNamed = events.every(({ entity }) => words.includes(toWords(entity)));
  return gaps.map((gap) =>
    gap.code !== "coverage_events" || isNamed || words.includes(toWords(gap.detail)) ? gap : { ...gap, severity: "minor" },
  );
}

function findUncorrectedChanges(turn: AnswerSources, answer: string): Gap[] {
  const { ledger } = turn;
  const coverage = ledger.cells.flatMap((cell) => (cell.replacedIn === null && cell.coverage ? [cell.coverage] : []));
  if (coverage.every(({ series }) => series.length === 0)) return [];
  const amounts = listUncorrectedAmounts(coverage, listShown(readSmallResults(turn), ledger.artifacts));
  const found = findUncorrectedNumbers(answer, { amounts, events: coverage.flatMap(({ events }) => events) });
  return found.length === 0 ? [] : [{ code: "uncorrected_change", severity: "minor", detail: describeUncorrectedNumbers(found) }];
}
