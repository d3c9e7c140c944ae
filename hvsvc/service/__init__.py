"""The gRPC face: thin servicers, conversion between messages and values, one status table."""
