"""Benchmarks, some of them against peer libraries. The programs print their results as lines of JSON."""
