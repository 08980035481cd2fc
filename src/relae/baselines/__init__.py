"""Models that the linear autoencoders are compared with, behind the same protocol.

The models that are trained step by step need torch for `fit` (the extra `neural`), and for nothing else.
"""

from relae.baselines._bspm import BSPM
from relae.baselines._chebycf import ChebyCF
from relae.baselines._gfcf import GFCF
from relae.baselines._graph_models import GRMF, HMLET, LTOCF, GRMFNorm, LightGCN
from relae.baselines._ials import IALS
from relae.baselines._knn import ContentKNN, ItemKNN, LastItemKNN
from relae.baselines._markov import Markov
from relae.baselines._multvae import MultVAE
from relae.baselines._popularity import Popularity
from relae.baselines._random import Random
from relae.baselines._rp3beta import RP3Beta
from relae.baselines._sasrec import SASRec
from relae.baselines._slim import SLIM
from relae.baselines._trained import Mark, Trained
from relae.baselines._trending import Trending
from relae.baselines._turbocf import TurboCF

__all__ = [
    "BSPM",
    "GFCF",
    "GRMF",
    "HMLET",
    "IALS",
    "LTOCF",
    "SLIM",
    "ChebyCF",
    "ContentKNN",
    "GRMFNorm",
    "ItemKNN",
    "LastItemKNN",
    "LightGCN",
    "Mark",
    "Markov",
    "MultVAE",
    "Popularity",
    "RP3Beta",
    "Random",
    "SASRec",
    "Trained",
    "Trending",
    "TurboCF",
]
