"""What `hcnet bench` measures: the installed library, on this machine, over built-in data.

The benchmarks of the repository use the same data, networks and sweeps, with more seeds and peers.
"""
