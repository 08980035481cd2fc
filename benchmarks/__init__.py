"""Benchmarks: `python -m benchmarks [inverse|peers|large]`. Each prints JSON lines with ratios taken in one run."""
