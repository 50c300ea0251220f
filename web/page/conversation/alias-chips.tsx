import type { Alias } from "../../../src/protocol/http-tables.ts";
import { texts } from "../../texts.ts";

interface AliasChipsProps {
  readonly aliases: readonly Alias[];
  onOpen(alias: string): void;
}

/** The aliases of a conversation. */
export function AliasChips({ aliases, onOpen }: AliasChipsProps) {
  const tables = aliases.filter(({ hasTable }) => hasTable);
  if (tables.length === 0) return null;
  return (
    <ul className="chips" aria-label={texts.conversation.data}>
      {tables.map(({ alias, rows, tool }) => (
        <li key={alias}>
          <button type="button" className="chip" title={tool} onClick={() => onOpen(alias)}>
            <code>{alias}</code>
            {rows !== null && <span className="soft">{texts.conversation.rows(rows)}</span>}
          </button>
        </li>
      ))}
    </ul>
  );
}
