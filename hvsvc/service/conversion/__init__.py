"""Between messages and values: requests checked field by field, answers built with absent for unknown."""
