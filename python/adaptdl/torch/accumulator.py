"""Sums over what all replicas see: see espalier.torch.accumulator."""
from espalier.torch.accumulator import Accumulator

__all__ = ["Accumulator"]
