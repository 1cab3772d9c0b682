"""Benchmarks against peer libraries. Each program prints one line of JSON."""
