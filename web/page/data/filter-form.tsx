import { useState } from "react";
import type { TableColumn } from "../../../src/protocol/http-tables.ts";
import { texts } from "../../texts.ts";
import type { TableFilter } from "../api/server.ts";

interface FilterFormProps {
  readonly columns: readonly TableColumn[];
  readonly filter: readonly TableFilter[];
  onChange(filter: readonly TableFilter[]): void;
}

type Op = keyof typeof texts.data.ops;

/** Form for filters, all of which must match. */
export function FilterForm({ columns, filter, onChange }: FilterFormProps) {
  const [column, setColumn] = useState(columns[0]?.name ?? "");
  const [op, setOp] = useState<Op>("eq");
  const [value, setValue] = useState("");
  const needsValue = op !== "isNull" && op !== "notNull";
  const isNumeric = ["integer", "number"].includes(columns.find(({ name }) => name === column)?.type ?? "");
  const add = (): void => {
    const isNumber = isNumeric && value.trim() !== "" && Number.isFinite(Number(value));
    onChange([...filter, { column, op, ...(needsValue ? { value: isNumber ? Number(value) : value } : {}) }]);
    setValue("");
  };
  return (
    <form
      className="filter"
      onSubmit={(event) => {
        event.preventDefault();
        add();
      }}
    >
      <select aria-label={texts.data.filterColumn} value={column} onChange={(event) => setColumn(event.target.value)}>
        {columns.map(({ name }) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      <select aria-label={texts.data.filterOp} value={op} onChange={(event) => setOp(event.target.value as Op)}>
        {Object.entries(texts.data.ops).map(([name, words]) => (
          <option key={name} value={name}>
            {words}
          </option>
        ))}
      </select>
      {needsValue && (
        <input
          aria-label={texts.data.filterValue}
          placeholder={texts.data.filterValue}
          value={value}
          onChange={(event) => setValue(event.target.value)}
        />
      )}
      <button type="submit" disabled={needsValue && value === ""}>
        {texts.data.addFilter}
      </button>
      {filter.map((one, index) => {
        const words = `${one.column} ${texts.data.ops[one.op as Op]} ${one.value ?? ""}`.trim();
        return (
          <button
            key={words}
            type="button"
            className="chip"
            aria-label={texts.data.removeFilter(words)}
            onClick={() => onChange(filter.filter((_other, place) => place !== index))}
          >
            {words} <span aria-hidden>×</span>
          </button>
        );
      })}
    </form>
  );
}
