"""`python -m relae.serve._worker`: one of several workers, started by the supervisor in `_processes`."""

from relae.serve._processes import run_worker

if __name__ == "__main__":
    run_worker()
