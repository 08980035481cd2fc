"""Several Python threads in the compiled kernels at once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np

from relae.linalg import as_csr, dense_sparse, gram, invert_spd, quadratic_forms, sparse_dense, top_k, transpose

THREADS = 4


def test_threads_do_not_disturb_each_other():
    start = Barrier(THREADS)

    def work(seed):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 3, (40 + seed, 30)).astype(np.float64) * (rng.random((40 + seed, 30)) < 0.3)
        a = as_csr(x, np.float64)
        square = x.T @ x + np.eye(30)
        start.wait()
        for _ in range(20):
            out = np.zeros((30, 30))
            assert np.array_equal(gram(transpose(a), a, out), np.tril(x.T @ x))
            assert np.array_equal(sparse_dense(a, square), x @ square)
            assert np.array_equal(dense_sparse(square, transpose(a).T.tocsr()), square @ x.T)
            assert np.allclose(quadratic_forms(a, square), np.einsum("ri,ij,rj->r", x, square, x))
            assert top_k(x, 3)[0].tolist() == np.argsort(-x, axis=1, kind="stable")[:, :3].tolist()
            assert np.allclose(invert_spd(square.copy()) @ square, np.eye(30))
        return seed

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(work, range(THREADS))) == list(range(THREADS))
