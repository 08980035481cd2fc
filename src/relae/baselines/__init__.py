"""What the linear autoencoders are compared with, behind the same protocol."""

from relae.baselines._gfcf import GFCF
from relae.baselines._popularity import Popularity

__all__ = ["GFCF", "Popularity"]
