"""What the linear autoencoders are compared with, behind the same protocol."""

from relae.baselines._gfcf import GFCF

__all__ = ["GFCF"]
