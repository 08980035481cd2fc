"""The paper's baselines that learn a vector per user and item: GRMF, GRMF-Norm, LightGCN, LT-OCF and HMLET.

Their equations are in `relae.baselines.neural`, one module per model.
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
    """A model with a vector per user and item, trained so that a user's items score above the other items.

    A draw is a user, one of the user's items and one other item. A batch computes the vectors from the graph once.
    Without `batch_size`, an epoch has eight batches of at least 2,048 draws each.
    """

    # The name of a small array that the network learns beside the vectors, if any. A fitted model has it as the
    # attribute NAME_, and saves it among its facts.
    LEARNED: ClassVar[str] = ""
    WIDTH: ClassVar[int | None] = None  # the number of columns of that array; None if it has one dimension

    dim: int
    l2: float

    @abstractmethod
    def _network_of(self, graph: "Graph") -> "Network":
        """Return the untrained network of this model for a graph."""

    def _network(self, data: Interactions) -> "Network":
        from relae.baselines.neural._graph import Graph

        return self._network_of(Graph(data.matrix))

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
            fits = learned.ndim == empty.ndim and learned.shape[1:] == empty.shape[1:]
            if not fits or not np.isfinite(learned).all():
                raise ValueError(f"{self.LEARNED} has the shape {learned.shape} or numbers that are not finite")
            setattr(self, f"{self.LEARNED}_", learned)


class GRMF(GraphModel):
    """Matrix factorization with a penalty on the distance between the vectors of a user and of the user's items.

    Parameters
    ----------
    dim : int
        Length of a vector.
    smoothness : float
        The weight of the penalty ‖e_u − e_i‖² for each item i of a user u.
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

    def _network_of(self, graph: "Graph") -> "Network":
        from relae.baselines.neural.grmf import GRMFNetwork

        return GRMFNetwork(graph, self.dim, self.smoothness, self.normalized, self.l2, self.seed)


class GRMFNorm(GRMF):
    """GRMF with the penalty ‖e_u/√d_u − e_i/√d_i‖², where d is the number of neighbours; same parameters as GRMF."""

    normalized: ClassVar[bool] = True


class LightGCN(GraphModel):
    """Vectors that are averaged over neighbours in each layer; scores use the mean of all layers (He et al. 2020).

    Parameters
    ----------
    dim : int
        Length of a vector.
    layers : int
        Number of layers: how many edges a vector is passed along.
    l2 : float
        The penalty on the vectors before the first layer.
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

    def _network_of(self, graph: "Graph") -> "Network":
        from relae.baselines.neural.lightgcn import LightGCNNetwork

        return LightGCNNetwork(graph, self.dim, self.layers, self.l2, self.seed)


class LTOCF(GraphModel):
    """LightGCN with continuous layers: an ODE with learned times (Choi et al. 2021).

    Parameters
    ----------
    dim : int
        Length of a vector.
    intervals : int
        Number of intervals; the times between them are learned.
    duration : float
        The time at which the ODE ends; it starts at 0.
    method : str
        A solver of torchdiffeq: "euler", "midpoint" and "rk4" take one step per interval, "dopri5" chooses its steps.
    residual : bool
        Keep the state at the start of an interval as a part of the state at its end. If False, it is subtracted.
    time_learning_rate : float
        Learning rate of the times; 0 leaves them evenly spaced.
    l2 : float
        The penalty on the vectors at time 0.
    **training
        See `Trained`.

    Attributes
    ----------
    times_ : (intervals + 1,)
        The times, from 0 to `duration`; those in between are learned.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        DIM,
        Parameter("intervals", 4, "the number of intervals between learned times", low=1, whole=True),
        Parameter("duration", 4.0, "the last time", low=0, above=True),
        Parameter("method", "rk4", "a solver of torchdiffeq", choices=("euler", "midpoint", "rk4", "dopri5")),
        Parameter("residual", False, "keep the state at the start of an interval in that at its end"),
        Parameter("time_learning_rate", 3e-4, "the learning rate of Adam for the times; 0 keeps them fixed", low=0),
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

    def _network_of(self, graph: "Graph") -> "Network":
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
        times = ", ".join(f"{time:.3g}" for time in self.times_)
        return super().facts() | ({"times": times} if times else {})


class HMLET(GraphModel):
    """LightGCN with gates that choose, for each node, between linear and non-linear layers (Kong et al. 2022).

    Parameters
    ----------
    dim : int
        Length of a vector.
    layers : int
        Number of layers: how many edges a vector is passed along.
    gates : str
        The layers that have a gate: those at the "end", in the "middle", at the "front", or "all".
    warm_up : int
        Epochs before the gates learn. Only later epochs can be the best one, and `patience` counts from then on. A
        training that ends earlier gives a warning.
    dropout : float
        Dropout within the gates.
    edge_dropout : float
        Share of the edges to drop, drawn again for each batch.
    gate_learning_rate : float
        Learning rate of the gates.
    l2 : float
        The penalty on the vectors before the first layer.
    **training
        See `Trained`.

    Attributes
    ----------
    linear_shares_ : (gates, 2)
        For each gate, the share of users and the share of items for which it chose the linear layer.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        DIM,
        LAYERS.with_default(4, low=1),
        Parameter("gates", "end", "the layers that have gates", choices=("end", "middle", "front", "all")),
        Parameter("warm_up", 150, "the number of epochs before the gates learn", low=0, whole=True),
        Parameter("dropout", 0.2, "the dropout rate in the gates", low=0, high=1, below=True, option=True),
        Parameter(
            "edge_dropout", 0.0, "the dropout rate of the edges, drawn again for each batch", low=0, high=1, below=True
        ),
        Parameter("gate_learning_rate", 1e-3, "the learning rate of Adam for the gates", low=0),
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

    def _network_of(self, graph: "Graph") -> "Network":
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
