"""The shapes that tools return, one file for each family; `sluice.frame.to_frame` is the way in."""
