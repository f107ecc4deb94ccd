"""Measurements of Landoracle itself: what stands in docs/benchmarks.md can be run again."""
