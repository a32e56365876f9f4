"""Formats of token logs, each read part by part."""
