"""Messages and events -> tokens."""
