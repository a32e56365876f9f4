"""Typed event streams, prompts and history for the harmony format of gpt-oss models."""
