"""General linear algebra: the inverse, Gram matrices, products with sparse matrices, top-k."""

from relae.linalg.als import aligned, als_rows
from relae.linalg.layout import (
    BYTES,
    FLOAT32,
    FLOAT64,
    FLOATS,
    INT64,
    Expected,
    Layout,
    check_layout,
    csr_layout,
    prefixed,
)
from relae.linalg.lists import best_sums, ranked_sums
from relae.linalg.local import (
    BLOCK,
    SQUARE_BYTES,
    Labelled,
    elastic_columns,
    labelled,
    local_columns,
    local_workspace_bytes,
    nearest,
)
from relae.linalg.low_rank import change_rows, without_rows
from relae.linalg.parts import Arrays, Blocks, csr_from_parts, csr_parts, fingerprint
from relae.linalg.rows import RowIndex, is_same
from relae.linalg.sequences import Sequences, time_order, time_ranks
from relae.linalg.similarity import most_similar
from relae.linalg.singular import right_singular_vectors
from relae.linalg.sparse import (
    Csr,
    Dense,
    Vector,
    as_csr,
    csr_block,
    dense_sparse,
    gram,
    gram_diagonal,
    quadratic_forms,
    scaled_columns,
    scaled_rows,
    sparse_dense,
    sparse_sparse,
    transpose,
)
from relae.linalg.spd import inverse_workspace_bytes, invert_spd
from relae.linalg.threads import limit_threads, one_blas_thread
from relae.linalg.topk import load_kernels, top_k

__all__ = [
    "BLOCK",
    "BYTES",
    "FLOAT32",
    "FLOAT64",
    "FLOATS",
    "INT64",
    "SQUARE_BYTES",
    "Arrays",
    "Blocks",
    "Csr",
    "Dense",
    "Expected",
    "Labelled",
    "Layout",
    "RowIndex",
    "Sequences",
    "Vector",
    "aligned",
    "als_rows",
    "as_csr",
    "best_sums",
    "change_rows",
    "check_layout",
    "csr_block",
    "csr_from_parts",
    "csr_layout",
    "csr_parts",
    "dense_sparse",
    "elastic_columns",
    "fingerprint",
    "gram",
    "gram_diagonal",
    "inverse_workspace_bytes",
    "invert_spd",
    "is_same",
    "labelled",
    "limit_threads",
    "load_kernels",
    "local_columns",
    "local_workspace_bytes",
    "most_similar",
    "nearest",
    "one_blas_thread",
    "prefixed",
    "quadratic_forms",
    "ranked_sums",
    "right_singular_vectors",
    "scaled_columns",
    "scaled_rows",
    "sparse_dense",
    "sparse_sparse",
    "time_order",
    "time_ranks",
    "top_k",
    "transpose",
    "without_rows",
]
