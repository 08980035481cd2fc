"""The settings of a service; importable without the packages of the extra `serve`."""

from dataclasses import dataclass, field, fields
from pathlib import Path

from relae._common.checks import refuse
from relae.errors import Option, ParameterError


@dataclass(frozen=True)
class Settings:
    """One model folder, the address, access, and the limits of requests.

    Parameters
    ----------
    path : Path
        The model folder; a reload reads it again.
    host, port
        Where to listen; port 0 takes a free one.
    workers : int
        Processes that answer; they share the memory-mapped model.
    api_key : str, optional
        What every request under /v1 must show. Without it the service is open, and cannot be reloaded over HTTP.
    cors : tuple of str
        Origins whose pages may call the service, such as "https://shop.example"; "*" for all; none by default.
    allowed_hosts : tuple of str
        Names that the service answers to, such as "recommend.example"; "*" for all. Without any, it answers to all
        names on the network, but over loopback only to local ones: no page can read from it by a name of its own.
    max_history, max_k, max_batch, max_ids, max_xis : int
        The most items of a history, items of a list, histories of a batch, ids in allow or deny, and lists of a path.
    max_results, max_explained : int
        The most items in an answer (lists × k), and the most items with reasons.
    max_body_bytes : int
        The largest body of a request.
    max_waiting : int
        Requests that may wait for the model in one worker; any more are turned away with 503.
    max_connections : int
        Connections of one worker. One more ends the one that has kept the service waiting for longest.
    client_seconds : int
        How long a client may take for the head of a request, again for its body, and again to read the answer.
    wait_seconds : int
        How long a request may wait for the model before it is turned away with 503.
    threads : int
        Threads of the compiled kernels in each worker. One is best for most: a second one helps with large models on
        idle cores, and hurts on busy ones; more workers serve more requests.
    verify : bool
        Check the model's checksums whenever it is opened.
    in_memory : bool
        Read the model into the memory of each worker instead of mapping its files, which must not be overwritten then.
    log : bool
        Write one line of JSON per request to stderr.
    hang_seconds : int
        A worker that takes longer than this for a part of an answer is stopped and replaced.
    stop_seconds : int
        How long requests that are under way may take after the service is told to stop.
    """

    path: Path
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    api_key: str | None = field(default=None, repr=False)
    cors: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    max_history: int = 5_000
    max_k: int = 1_000
    max_batch: int = 256
    max_ids: int = 20_000
    max_xis: int = 101
    max_results: int = 50_000
    max_explained: int = 1_000
    max_body_bytes: int = 1 << 20
    max_waiting: int = 1_000
    max_connections: int = 2_000
    client_seconds: int = 20
    wait_seconds: int = 10
    threads: int = 1
    verify: bool = False
    in_memory: bool = False
    log: bool = True
    hang_seconds: int = 60
    stop_seconds: int = 30

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))
        object.__setattr__(self, "cors", tuple(self.cors))
        object.__setattr__(self, "allowed_hosts", tuple(self.allowed_hosts))
        if not 0 <= self.port <= 65_535:
            raise ValueError(f"the port must lie between 0 and 65535, got {self.port!r}")
        limits = [limit.name for limit in fields(self) if limit.name.startswith("max_")]
        for name in ("workers", "threads", "client_seconds", "wait_seconds", "hang_seconds", *limits):
            if getattr(self, name) < 1:
                refuse(name, getattr(self, name), "be at least 1")
        if self.max_waiting >= self.max_connections:
            raise ParameterError(
                Option("max_connections"),
                " must be larger than ",
                Option("max_waiting"),
                f", so that there is room for health checks: got {self.max_connections:,} connections and "
                f"{self.max_waiting:,} waiting",
                field="max_connections",
                value=self.max_connections,
            )
        if self.stop_seconds < 0:
            refuse("stop_seconds", self.stop_seconds, "be at least 0")
        if self.api_key is not None and not self.api_key.strip():
            raise ValueError("the API key is empty: give one of some length, or none to leave the service open")
        for name in self.allowed_hosts:
            if not name or set(name) & set("/: "):
                raise ValueError(f"an allowed host is a name without scheme and port, or *: got {name!r}")
        for origin in self.cors:
            if origin != "*" and ("://" not in origin or origin.endswith("/")):
                raise ValueError(f"an origin is a scheme and a host such as https://shop.example, or *: got {origin!r}")
