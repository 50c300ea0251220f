/** Python that answers questions to one table: its schema, pages of rows, filters, searches, orders. It keeps the last few orders for the next page. */
export const answerTablePython: string = String.raw`
import re as _re
_number = _re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_formula = _re.compile(r"[=+\-@\t\r]")
_quoted = _re.compile(r'[",\n\r]|^\s|\s$')

def _csv_cell(text, is_text):
    if is_text and _formula.match(text) and not _number.fullmatch(text): text = "'" + text
    return '"' + text.replace('"', '""') + '"' if _quoted.search(text) else text

def _csv_column(column):
    def write(cell):
        if cell is None: return ""
        if isinstance(cell, bool): return "true" if cell else "false"
        if isinstance(cell, (int, float)): return repr(cell)
        return _csv_cell(cell if isinstance(cell, str) else _json.dumps(cell, ensure_ascii=False), True)
    return [write(cell) for cell in _plain(column.tolist())]

class _Table:
    def __init__(self, value, path, notes):
        self.notes, self.orders, self.described = notes, {}, None
        self.refusal = None
        try:
            self.frame = _to_frame(value, path, self.notes)
        except _Refusal as refusal:
            self.refusal = refusal
            return
        if list(self.frame.columns) != _unique(self.frame.columns):
            self.frame = self.frame.set_axis(_unique(self.frame.columns), axis=1)

    def answer(self, question):
        try:
            if self.refusal: raise self.refusal
            answer = getattr(self, {"schema": "schema", "page": "page", "csv": "csv"}[question["ask"]])(question)
        except _Refusal as refusal:
            answer = {"refused": refusal.facts}
        return answer if isinstance(answer, str) else _json.dumps(answer, ensure_ascii=False, separators=(",", ":"))

    def schema(self, question):
        if self.described is None:
            shown = list(self.frame.columns[:500])
            if len(shown) < len(self.frame.columns):
                self.notes.append(f"{len(self.frame.columns) - len(shown)} columns past the first 500 are not described")
            columns = [self.describe(name) for name in shown]
            self.described = {"rows": len(self.frame), "columnCount": len(self.frame.columns), "columns": columns, "notes": self.notes}
        return self.described

    def describe(self, name):
        dtype, column = str(self.frame[name].dtype), _seconds(self.frame[name])
        kind = _kind(column)
        there = column.dropna()
        nulls = len(column) - len(there)
        facts = {"name": name, "dtype": dtype, "type": kind, "nulls": nulls, "nullShare": round(nulls / len(column), 6) if len(column) else 0}
        try:
            facts["distinct"] = int(there.nunique())
        except TypeError:
            facts["distinct"] = None
        if len(there) and kind in ("integer", "number", "time", "text"):
            try:
                facts["min"], facts["max"] = _show(there.min()), _show(there.max())
            except TypeError:
                pass
        if len(there) and kind in ("integer", "number"):
            facts["mean"] = _plain(float(there.astype(float).mean()))
        examples = there.head(1000)
        try:
            examples = examples.drop_duplicates()
        except TypeError:
            pass
        facts["examples"] = [_show(value) for value in examples.head(3).tolist()]
        return facts

    def csv(self, question):
        names, lines, size, at = list(self.frame.columns), [], 0, question["offset"]
        if at == 0:
            lines.append(",".join(_csv_cell(name, True) for name in names))
        while at < len(self.frame) and size < question["maxBytes"]:
            block = self.frame.iloc[at:at + 2000]
            columns = [_csv_column(block[name]) for name in names]
            written = [",".join(row) for row in zip(*columns)]
            size += sum(map(len, written)) + len(written)
            lines.extend(written)
            at += len(block)
        text = "".join(line + "\n" for line in lines)
        return {"text": text, "next": at if at < len(self.frame) else None}

    def need(self, name):
        if name not in self.frame.columns:
            raise _Refusal("column", column=name, columns=list(self.frame.columns[:300]))
        return self.frame[name]

    def hold(self, test):
        column, op, value = _seconds(self.need(test["column"])), test["op"], test.get("value")
        there = column.notna().to_numpy()
        if op == "isNull": return ~there
        if op == "notNull": return there
        if op == "contains": return _matches(column, str(value))
        if op == "startsWith": return _matches(column, str(value), whole_start=True)
        if op == "in":
            found = np.zeros(len(column), dtype=bool)
            for one in value:
                found |= self.hold({"column": test["column"], "op": "eq", "value": one})
            return found
        other = self.alike(test["column"], column, value)
        if _kind(column) in ("text", "other") and not isinstance(column.dtype, pd.StringDtype):
            column = _as_text(column).to_pandas()
        compare = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}[op]
        held = np.zeros(len(column), dtype=bool)
        held[there] = pd.Series(getattr(column[there], compare)(other)).fillna(False).to_numpy(dtype=bool)
        return held

    def alike(self, name, column, value):
        kind = _kind(column)
        wrong = _Refusal("value", column=name, type=kind, value=str(value)[:200])
        if kind in ("integer", "number"):
            if isinstance(value, bool): raise wrong
            if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "decimal":
                from decimal import Decimal, InvalidOperation
                try:
                    return Decimal(str(value))
                except InvalidOperation:
                    raise wrong from None
            if isinstance(value, (int, float)): return value
            try:
                return int(value) if str(value).strip().lstrip("+-").isdigit() else float(value)
            except (TypeError, ValueError):
                raise wrong from None
        if kind == "boolean":
            words = {"true": True, "false": False}
            value = words.get(str(value).lower())
            if value is None: raise wrong
            return value
        if kind == "time":
            try:
                moment = pd.Timestamp(value)
            except (TypeError, ValueError):
                raise wrong from None
            if column.dtype == object: return moment.date()
            zone = getattr(column.dtype, "tz", None)
            if zone is None: return moment.tz_localize(None) if moment.tzinfo is None else moment.tz_convert("UTC").tz_localize(None)
            return moment.tz_localize(zone) if moment.tzinfo is None else moment.tz_convert(zone)
        return value if isinstance(value, str) else _json.dumps(value)

    def order(self, question):
        tests, words, keys = question.get("filter") or [], question.get("search"), question.get("sort") or []
        if not tests and not words and not keys: return None
        known = _json.dumps([tests, words, keys])
        if known in self.orders:
            self.orders[known] = self.orders.pop(known)
            return self.orders[known]
        rows = np.arange(len(self.frame))
        if tests or words:
            keep = np.ones(len(self.frame), dtype=bool)
            for test in tests: keep &= self.hold(test)
            if words:
                found = np.zeros(len(self.frame), dtype=bool)
                for name in self.frame.columns: found |= _matches(self.frame[name], words)
                keep &= found
            rows = rows[keep]
        if keys: rows = self.sort(rows, keys)
        while len(self.orders) >= 4: self.orders.pop(next(iter(self.orders)))
        self.orders[known] = rows
        return rows

    def sort(self, rows, keys):
        columns = {}
        for number, key in enumerate(keys):
            column = self.need(key["column"]).take(rows)
            if column.dtype == object:
                column = _as_text(column).to_pandas() if _kind(column) in ("text", "other", "boolean") else column
            columns[number] = column.reset_index(drop=True)
        rising = [not key.get("descending", False) for key in keys]
        def ordered(keyed):
            return rows[keyed.sort_values(list(keyed), ascending=rising, kind="stable", na_position="last").index.to_numpy()]
        try:
            return ordered(pd.DataFrame(columns))
        except TypeError:  # values that cannot be compared with each other are ordered by their texts
            return ordered(pd.DataFrame({number: _as_text(column).to_pandas() for number, column in columns.items()}))

    def page(self, question):
        names = question.get("columns") or list(self.frame.columns)
        for name in names: self.need(name)
        order = self.order(question)
        matched = len(self.frame) if order is None else len(order)
        offset = min(question["offset"], matched)
        end = min(offset + question["limit"], matched)
        where = slice(offset, end) if order is None else order[offset:end]
        most, cut = question["maxCellCharacters"], 0
        cells = [_plain(self.frame[name].iloc[where].tolist()) for name in names]
        texts, size = [], 0
        for row in zip(*cells) if names else []:
            clipped = []
            for cell in row:
                text = cell if isinstance(cell, str) else None if cell is None or isinstance(cell, (int, float)) else _json.dumps(cell, ensure_ascii=False)
                if text is not None and len(text) > most:
                    cell, cut = f"{text[:most]}… [+{len(text) - most} characters]", cut + 1
                clipped.append(cell)
            row = dict(zip(names, clipped)) if question["records"] else clipped
            text = _json.dumps(row, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            size += len(text.encode()) + 1
            if size > question["maxBytes"] and texts: break
            texts.append(text)
        returned = len(texts) if names else 0
        after = offset + returned
        facts = {"columns": names, "rows": [], "offset": offset, "returned": returned, "total": len(self.frame), "matched": matched,
                 "nextOffset": after if after < matched else None, "cutCells": cut}
        text = _json.dumps(facts, ensure_ascii=False, separators=(",", ":"))
        return text.replace('"rows":[]', '"rows":[' + ",".join(texts) + "]", 1)
`;
