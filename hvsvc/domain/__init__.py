"""The pure core: reads definitions, plans, edits, verifies. No clock, no logger, no I/O."""
