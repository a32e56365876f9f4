"""What reading and writing share: messages, headers, events; no state, no vocabulary."""
