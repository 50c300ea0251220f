"""Answers questions to one table: its schema, pages of rows, and the whole of it as a file.

The host sends these modules into a table's sandbox (`src/data/tables/ask-table.ts`); they are not part of the snapshot.
"""
