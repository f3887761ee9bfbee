"""Benchmarks: what the paper and peers report, beside what hcnet reaches."""
