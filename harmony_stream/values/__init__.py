"""Messages, headers, events: shared by reading and writing; no state, no vocabulary."""
