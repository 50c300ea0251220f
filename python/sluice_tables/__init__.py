"""Answers questions about one table: its schema, pages of rows, and a download as a file.

The host sends these modules into the sandbox of a table (`src/data/tables/ask-table.ts`). They are not part of the snapshot.
"""
