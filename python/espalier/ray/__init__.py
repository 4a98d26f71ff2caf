"""Espalier on a Ray cluster (docs/clusters.md): `python -m espalier.ray serve` and `run`, and the command
`espalier-on-ray`. A node of the pool is an actor that runs one agent; Ray is asked for such actors and for nothing else."""
