"""What ends a command before it has begun."""


class UnreadableError(Exception):
    """A sentence that names the file and says why it cannot be used."""
