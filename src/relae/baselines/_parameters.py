"""The parameters that several baselines share."""

from relae.recommender import Parameter, Range

RATES = Range(3e-3, 0.1, log=True)
PENALTIES = Range(1e-6, 1e-2, log=True)

DIM = Parameter("dim", 64, "the length of the vectors", low=1, whole=True, option=True)
NEIGHBOURS = Parameter(
    "neighbours",
    50,
    "the number of nearest items that count for an item",
    low=1,
    whole=True,
    search=Range(3, 1000, log=True, whole=True),
    option=True,
)
SEED = Parameter("seed", 0, "the random seed", low=0, whole=True)

# --- of models that are trained --------------------------------------------------------------------------------------

LEARNING_RATE = Parameter("learning_rate", 1e-3, "the learning rate of Adam", low=0, above=True, option=True)
BATCH_SIZE = Parameter(
    "batch_size", None, "the batch size; by default chosen from the data", low=1, whole=True, option=True
)
AVERAGE = Parameter("average", 0.999, "the decay of the running average of the weights", low=0, high=1, below=True)
EPOCHS = Parameter("epochs", 1000, "the most passes over the data", low=1, whole=True, option=True)
EVERY = Parameter("every", 5, "the number of epochs between validations", low=1, whole=True)
PATIENCE = Parameter(
    "patience",
    10,
    "the number of validations without improvement after which training stops; 0 never stops",
    low=0,
    whole=True,
    option=True,
)
VALIDATION_SHARE = Parameter(
    "validation_share", 0.1, "the share of the data held out for validation", low=0, high=1, below=True
)
OBJECTIVE = Parameter("objective", "ndcg@20", "the metric that the validation maximizes")
TRAINING_SEED = SEED.with_default(0, high=2**63, below=True)

TRAINING = (LEARNING_RATE, BATCH_SIZE, AVERAGE, EPOCHS, EVERY, PATIENCE, VALIDATION_SHARE, OBJECTIVE, TRAINING_SEED)
GRAPH_TRAINING = (LEARNING_RATE.with_default(0.03, search=RATES), *TRAINING[1:])
LAYERS = Parameter("layers", 3, "the number of graph layers", low=0, whole=True, option=True)
EMBEDDING_L2 = Parameter("l2", 1e-4, "the penalty on the vectors", "λ", low=0, search=PENALTIES, option=True)
