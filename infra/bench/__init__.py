"""Benchmarks against comparable software, in one run on one machine.

Machines differ, so only ratios and counts are worth quoting.
"""
