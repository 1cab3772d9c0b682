"""Measurements against peers; each prints one JSON line with a ratio."""
