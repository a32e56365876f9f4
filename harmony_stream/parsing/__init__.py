"""Tokens -> events -> messages."""
