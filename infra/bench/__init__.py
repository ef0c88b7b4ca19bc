"""Benchmarks beside peers, in one run on one machine: only ratios and counts are quoted."""
