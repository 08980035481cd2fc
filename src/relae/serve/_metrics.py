"""Metrics for Prometheus."""

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector

if TYPE_CHECKING:
    from relae.serve._snapshot import Snapshot

# Set by the process that starts several workers: each counts in files of its own there, and any of them adds them up.
SHARED = "PROMETHEUS_MULTIPROC_DIR"

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counters of one application; those of all workers if there are several."""

    def __init__(self, current: "Callable[[], Snapshot | None]") -> None:
        own = CollectorRegistry()
        self._requests = Counter("relae_requests", "Requests answered.", ["method", "route", "status"], registry=own)
        self._seconds = Histogram(
            "relae_request_seconds", "Seconds to answer.", ["route"], registry=own, buckets=_SECONDS
        )
        self._reloads = Counter("relae_reloads", "Reloads of the model, good and bad.", ["result"], registry=own)
        for result in ("good", "bad"):
            self._reloads.labels(result)  # shown from the start, as 0
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._shown = own
        if SHARED in os.environ:
            self._shown = CollectorRegistry()
            MultiProcessCollector(self._shown)  # type: ignore[no-untyped-call]
        else:
            ProcessCollector(registry=self._shown)
        self._shown.register(_ModelCollector(current))

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a response."""
        key = method, route, status
        if key not in self._children:  # looking up labels costs more than counting
            self._children[key] = self._requests.labels(method, route, str(status)), self._seconds.labels(route)
        count, histogram = self._children[key]
        count.inc()
        histogram.observe(seconds)

    def reload(self, good: bool) -> None:
        """Count a reload."""
        self._reloads.labels("good" if good else "bad").inc()

    def text(self) -> bytes:
        """Return all in Prometheus' text format."""
        return generate_latest(self._shown)


class _ModelCollector:
    """The model in use, looked up when metrics are collected."""

    def __init__(self, current: "Callable[[], Snapshot | None]") -> None:
        self._current = current

    def collect(self) -> Iterator[Metric]:
        labels = ("model", "created", "loaded")  # no title, which is the name of a file: this route needs no key
        family = GaugeMetricFamily("relae_model_info", "The model that is served.", labels=labels)
        snapshot = self._current()
        if snapshot is not None:
            about = snapshot.description
            family.add_metric([about["model"], about["created"], about["loaded"]], 1)
        yield family
