"""Reads CSV-like files: recognizes how they are written, reads them, and names everything that was not obvious."""
