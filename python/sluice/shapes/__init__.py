"""Readers for the shapes that tools return, one file per family. `sluice.frame.to_frame` uses them."""
