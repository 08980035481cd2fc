"""Everything that needs torch: the networks, and one loop that trains them."""

from relae.baselines.neural._checkpoint import Checkpoint
from relae.baselines.neural._training import Network, Outcome, train

__all__ = ["Checkpoint", "Network", "Outcome", "train"]
