"""The worker: our processes inside a sandbox. Cells do not import anything from here."""
