"""The paper's systems of one vector per user and item: GRMF, GRMF-Norm, LightGCN, LT-OCF and HMLET.

Their equations are in `relae.baselines.neural`, one module each.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np

from relae.baselines._known_users import KnownUsers
from relae.baselines._parameters import DIM, EMBEDDING_L2, GRAPH_TRAINING, LAYERS
from relae.baselines._trained import GraphTraining, Trained
from relae.data import Interactions
from relae.evaluation import Split, hold_out_items
from relae.linalg import Arrays, Dense
from relae.recommender import Parameter, Range, State

if TYPE_CHECKING:
    from relae.baselines.neural import Network
    from relae.baselines.neural._graph import Graph


class GraphModel(Trained, KnownUsers):
    """A vector per user and item, compared in pairs: what a user has is to score above what the user has not.

    A batch of draws shares one way through the graph. Without `batch_size`, an epoch has eight batches, of at least
    2,048 draws each.
    """

    LEARNED: ClassVar[str] = ""  # what a network finds beside the vectors: a small array, which is a fact of the fit
    WIDTH: ClassVar[int | None] = None  # of a row of that array; it has no rows if that is None

    dim: int
    l2: float

    @abstractmethod
    def _of(self, graph: "Graph") -> "Network":
        """Return the network for a graph."""

    def _network(self, data: Interactions) -> "Network":
        from relae.baselines.neural._graph import Graph

        return self._of(Graph(data.matrix))

    def _divide(self, data: Interactions) -> Split:
        return hold_out_items(data, self.validation_share, rng=np.random.default_rng(self.seed))

    def _take(self, arrays: Arrays, data: Interactions) -> None:
        self._know(arrays["users"], arrays["items"], data)
        if self.LEARNED:
            setattr(self, f"{self.LEARNED}_", arrays[self.LEARNED])

    def state(self, form: str) -> State:
        state = super().state(form)
        learned = {self.LEARNED: getattr(self, f"{self.LEARNED}_").tolist()} if self.LEARNED else {}
        return State({**state.facts, **learned}, state.arrays)

    def restore(self, facts: Mapping[str, Any], arrays: Arrays) -> None:
        super().restore(facts, arrays)
        if self.LEARNED:
            empty = np.zeros((0,) if self.WIDTH is None else (0, self.WIDTH), np.float32)
            learned = np.array(facts[self.LEARNED], np.float32) if facts.get(self.LEARNED) else empty
            shaped = learned.ndim == empty.ndim and learned.shape[1:] == empty.shape[1:]
            if not shaped or not np.isfinite(learned).all():
                raise ValueError(f"{self.LEARNED} has the shape {learned.shape} or numbers that are not finite")
            setattr(self, f"{self.LEARNED}_", learned)


class GRMF(GraphModel):
    """Matrix factorization whose vectors are drawn together along the edges of the graph.

    Parameters
    ----------
    dim : int
        Length of a vector.
    smoothness : float
        The weight of ‖e_u − e_i‖² for an item i of a user u.
    l2 : float
        The penalty on the vectors.
    **training
        See `Trained`.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        DIM,
        Parameter(
            "smoothness",
            1e-3,
            "the weight of the distance between a user and an item",
            low=0,
            search=Range(1e-4, 1.0, log=True),
        ),
        EMBEDDING_L2.with_default(1e-2),
        GRAPH_TRAINING[0].with_default(0.01),
        *GRAPH_TRAINING[1:],
    )
    normalized: ClassVar[bool] = False

    def __init__(
        self,
        dim: int = 64,
        smoothness: float = 1e-3,
        l2: float = 1e-2,
        *,
        learning_rate: float = 0.01,
        **training: Unpack[GraphTraining],
    ) -> None:
        super().__init__(learning_rate=learning_rate, **training)
        self.dim, self.smoothness, self.l2 = dim, smoothness, l2

    def _of(self, graph: "Graph") -> "Network":
        from relae.baselines.neural.grmf import GRMFNetwork

        return GRMFNetwork(graph, self.dim, self.smoothness, self.normalized, self.l2, self.seed)


class GRMFNorm(GRMF):
    """GRMF with ‖e_u/√d_u − e_i/√d_i‖², d being the number of neighbours; the parameters are GRMF's."""

    normalized: ClassVar[bool] = True


class LightGCN(GraphModel):
    """Vectors that travel along the edges of the graph; the mean of the layers scores (He et al. 2020).

    Parameters
    ----------
    dim : int
        Length of a vector.
    layers : int
        How far they travel.
    l2 : float
        The penalty on the vectors before they travel.
    **training
        See `Trained`.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (DIM, LAYERS, EMBEDDING_L2, *GRAPH_TRAINING)

    def __init__(
        self,
        dim: int = 64,
        layers: int = 3,
        l2: float = 1e-4,
        *,
        learning_rate: float = 0.03,
        **training: Unpack[GraphTraining],
    ) -> None:
        super().__init__(learning_rate=learning_rate, **training)
        self.dim, self.layers, self.l2 = dim, layers, l2

    def _of(self, graph: "Graph") -> "Network":
        from relae.baselines.neural.lightgcn import LightGCNNetwork

        return LightGCNNetwork(graph, self.dim, self.layers, self.l2, self.seed)


class LTOCF(GraphModel):
    """LightGCN with continuous layers: an ODE with learned times (Choi et al. 2021).

    Parameters
    ----------
    dim : int
        Length of a vector.
    intervals : int
        Between learned times.
    duration : float
        The last time.
    method : str
        A solver of torchdiffeq: "euler", "midpoint" and "rk4" take one step per interval, "dopri5" as many as it needs.
    residual : bool
        Keep the state at the start of an interval in the state at its end.
    time_learning_rate : float
        Of the times; 0 leaves them as they are at the start, evenly spaced.
    l2 : float
        The penalty on the vectors at time 0.
    **training
        See `Trained`.

    Attributes
    ----------
    times_ : (intervals + 1,)
        From 0 to the duration, with the learned ones between.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        DIM,
        Parameter("intervals", 4, "the number of intervals between learned times", low=1, whole=True),
        Parameter("duration", 4.0, "the last time", low=0, above=True),
        Parameter("method", "rk4", "a solver of torchdiffeq", choices=("euler", "midpoint", "rk4", "dopri5")),
        Parameter("residual", False, "whether the state at the start of an interval stays in that at its end"),
        Parameter("time_learning_rate", 3e-4, "the step of Adam for the times; 0 leaves them as they are", low=0),
        EMBEDDING_L2,
        *GRAPH_TRAINING,
    )

    LEARNED: ClassVar[str] = "times"

    times_: Dense

    def __init__(
        self,
        dim: int = 64,
        intervals: int = 4,
        duration: float = 4.0,
        method: str = "rk4",
        residual: bool = False,
        time_learning_rate: float = 3e-4,
        l2: float = 1e-4,
        *,
        learning_rate: float = 0.03,
        **training: Unpack[GraphTraining],
    ) -> None:
        super().__init__(learning_rate=learning_rate, **training)
        self.dim, self.intervals, self.duration, self.method = dim, intervals, duration, method
        self.residual, self.time_learning_rate, self.l2 = residual, time_learning_rate, l2

    def _of(self, graph: "Graph") -> "Network":
        from relae.baselines.neural.ltocf import LTOCFNetwork

        return LTOCFNetwork(
            graph,
            self.dim,
            self.intervals,
            self.duration,
            self.method,
            self.residual,
            self.time_learning_rate,
            self.l2,
            self.seed,
        )

    def facts(self) -> dict[str, str]:
        known = {"times": ", ".join(f"{time:.3g}" for time in self.times_)} if len(self.times_) else {}
        return super().facts() | known


class HMLET(GraphModel):
    """LightGCN with gates that choose, for each node, between linear and non-linear layers (Kong et al. 2022).

    Parameters
    ----------
    dim : int
        Length of a vector.
    layers : int
        How far they travel.
    gates : str
        Which layers choose: "end", "middle", "front" or "all".
    warm_up : int
        Epochs before the gates learn. The best epoch is one after them, and patience begins then; a training that ends
        earlier says so.
    dropout : float
        Within the gates.
    edge_dropout : float
        Of the edges, drawn anew for each batch.
    gate_learning_rate : float
        Of the gates.
    l2 : float
        The penalty on the vectors before they travel.
    **training
        See `Trained`.

    Attributes
    ----------
    linear_shares_ : (gates, 2)
        Of the users, and of the items, for which each gate has chosen the linear layer.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        DIM,
        LAYERS.with_default(4, low=1),
        Parameter("gates", "end", "which layers choose", choices=("end", "middle", "front", "all")),
        Parameter("warm_up", 150, "epochs before the gates learn", low=0, whole=True),
        Parameter("dropout", 0.2, "the dropout within the gates", low=0, high=1, below=True, option=True),
        Parameter(
            "edge_dropout", 0.0, "the dropout of the edges, drawn anew for each batch", low=0, high=1, below=True
        ),
        Parameter("gate_learning_rate", 1e-3, "the step of Adam for the gates", low=0),
        EMBEDDING_L2,
        *GRAPH_TRAINING,
    )

    LEARNED: ClassVar[str] = "linear_shares"
    WIDTH: ClassVar[int | None] = 2

    linear_shares_: Dense

    def __init__(
        self,
        dim: int = 64,
        layers: int = 4,
        gates: str = "end",
        warm_up: int = 150,
        dropout: float = 0.2,
        edge_dropout: float = 0.0,
        gate_learning_rate: float = 1e-3,
        l2: float = 1e-4,
        *,
        learning_rate: float = 0.03,
        **training: Unpack[GraphTraining],
    ) -> None:
        super().__init__(learning_rate=learning_rate, **training)
        self.dim, self.layers, self.gates = dim, layers, gates
        self.warm_up, self.dropout, self.edge_dropout = warm_up, dropout, edge_dropout
        self.gate_learning_rate, self.l2 = gate_learning_rate, l2

    def _of(self, graph: "Graph") -> "Network":
        from relae.baselines.neural.hmlet import HMLETNetwork

        return HMLETNetwork(
            graph,
            self.dim,
            self.layers,
            self.gates,
            self.warm_up,
            self.dropout,
            self.edge_dropout,
            self.gate_learning_rate,
            self.l2,
            self.seed,
        )

    def facts(self) -> dict[str, str]:
        gates = "; ".join(f"{users:.0%} of users, {items:.0%} of items" for users, items in self.linear_shares_)
        return super().facts() | ({"linear": gates} if gates else {})
