"""Helpers that several rooms share and that know none of them."""
