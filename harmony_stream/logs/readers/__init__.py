"""Readers of token logs, one for each format, each part by part."""
