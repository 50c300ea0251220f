import type { CellDocument } from "../../../src/protocol/http-cells.ts";
import type { Alias } from "../../../src/protocol/http-tables.ts";
import type { TurnDocument } from "../../../src/protocol/http-turns.ts";
import { texts } from "../../texts.ts";
import { describeAlias } from "../describe-alias.ts";

interface AliasTableProps {
  readonly cell: CellDocument | null;
  readonly turn: TurnDocument | null;
  readonly aliases: readonly Alias[];
  onOpen(alias: string): void;
}

/** The data behind an artifact; for a chart without code, all data of its turn. */
export function AliasTable({ cell, turn, aliases, onOpen }: AliasTableProps) {
  const names = cell
    ? [...cell.inputAliases, ...(cell.resultAlias === null ? [] : [cell.resultAlias])]
    : aliases.filter(({ turnId }) => turnId === turn?.turnId).map(({ alias }) => alias);
  return (
    <ul className="aliases" aria-label={texts.panel.inputs}>
      {[...new Set(names)].map((name) => {
        const facts = aliases.find(({ alias }) => alias === name);
        return (
          <li key={name}>
            <button type="button" className="chip" disabled={!facts} onClick={() => onOpen(name)}>
              <code>{name}</code>
              <span className="soft">{facts ? describeAlias(facts) : texts.panel.unknownAlias}</span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}
