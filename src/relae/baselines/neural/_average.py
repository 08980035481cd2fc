"""The running average of a network's weights, which wavers less than the weights themselves."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn

from relae.linalg import Arrays

_WARM = 10  # steps over which the first average forgets where the weights began, and the part of all it looks back on


class Average:
    """After each step `follow` keeps a share of the average, less in the first steps; with share 0 there is none.

    The share after s steps is s/(s + 10) at the most: a tenth of all steps count, however large the share is to be.
    """

    def __init__(self, network: nn.Module, share: float) -> None:
        self.share, self.steps = share, 0
        self.weights = list(network.parameters()) if share else []
        self.means = [weight.detach().clone() for weight in self.weights]

    def follow(self) -> None:
        """Take the weights of one more step into account."""
        self.steps += 1
        kept = min(self.share, self.steps / (self.steps + _WARM))
        for mean, weight in zip(self.means, self.weights, strict=True):
            mean.lerp_(weight.detach(), 1 - kept)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Replace the weights of the network by the average, for the time of a block."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def _exchange(self) -> None:
        for mean, weight in zip(self.means, self.weights, strict=True):
            mean.data, weight.data = weight.data, mean.data

    def arrays(self) -> Arrays:
        """Return the arrays that a checkpoint has to keep."""
        return {"steps": np.array(self.steps), **{str(at): mean.numpy() for at, mean in enumerate(self.means)}}

    def restore(self, arrays: Arrays) -> None:
        """Restore the average from a checkpoint."""
        self.steps = int(arrays["steps"])
        for at, mean in enumerate(self.means):
            mean.copy_(torch.from_numpy(np.array(arrays[str(at)])))
