"""The application: the routes, and which errors have which status."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar, cast

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from relae.catalog import Item
from relae.errors import RelaeError
from relae.serve import _handlers, _requests, _responses
from relae.serve._decoding import Reader
from relae.serve._middleware import LimitBody, LimitHosts, Observe
from relae.serve._openapi import Operation, build_document
from relae.serve._page import read_page
from relae.serve._problem import Problem, error_body
from relae.serve._responses import encode
from relae.serve._service import Service
from relae.serve._settings import Settings
from relae.serve._shared import SharedCall
from relae.serve._snapshot import Snapshot

_R = TypeVar("_R")
_T = TypeVar("_T")
_Endpoint = Callable[[Request], Awaitable[Response]]


def build(settings: Settings, service: Service) -> Starlette:
    """Return the application around a service; `state.openapi` is its OpenAPI document."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with service.running():
            yield

    api = _Api(settings, service)
    _add_lists(api)
    _add_items(api)
    _add_operations(api)
    document = build_document(api.operations, secured=settings.api_key is not None)
    encoded = encode(document)

    async def openapi(_: Request) -> Response:
        return Response(encoded, media_type="application/json")

    app = Starlette(
        lifespan=lifespan,
        routes=[*api.routes, Route("/openapi.json", openapi), *_page_routes()],
        middleware=[
            Middleware(Observe, metrics=service.metrics, log=settings.log),
            Middleware(LimitHosts, host=settings.host, allowed=settings.allowed_hosts),
            *([_cors(settings)] if settings.cors else []),
            Middleware(LimitBody, max_bytes=settings.max_body_bytes),
        ],
        exception_handlers=dict.fromkeys((Problem, RelaeError, HTTPException, ClientDisconnect), _map_error),
    )
    app.router.redirect_slashes = False
    app.state.openapi = document
    return app


def _cors(settings: Settings) -> Middleware:
    return Middleware(
        CORSMiddleware,
        allow_origins=settings.cors,
        allow_methods=["GET", "POST"],
        allow_headers=["Authorization", "Content-Type", "X-API-Key", "X-Request-ID"],
        expose_headers=["X-Request-ID"],
        max_age=3600,
    )


async def _map_error(request: Request, error: Exception) -> Response:
    """Return the response for any error, in the one shape that all have."""
    headers: dict[str, str] = {}
    match error:
        case ClientDisconnect():
            return Response(status_code=499)  # for the log; nobody is there to read it
        case Problem(status=status, message=message, field=field, headers=headers):
            pass
        case HTTPException(status_code=status):
            field, headers, path = None, dict(error.headers or {}), request.url.path[:200]
            message = {
                404: f"there is nothing at {path}: /openapi.json lists what there is",
                405: f"{request.method} does not work on {path}: /openapi.json lists what does",
            }.get(status, str(error.detail))
        case RelaeError():
            status, message, field = 422, str(error), error.field
        case _:
            status, message, field = 422, str(error), None
    return Response(error_body(message, field), status, headers, media_type="application/json")


# --- the API ---------------------------------------------------------------------------------------------------------


class _Api:
    """The routes of the service with their documentation, and what they share: key, model and work queue."""

    def __init__(self, settings: Settings, service: Service) -> None:
        self.settings, self.service = settings, service
        self.routes: list[Route] = []
        self.operations: list[Operation] = []

    def add(
        self,
        path: str,
        response: Any,
        *statuses: int,
        reader: Reader[Any] | None = None,
        methods: tuple[str, ...] = ("GET",),
    ) -> Callable[[_Endpoint], _Endpoint]:
        """Return a decorator that adds a route; its docstring describes it."""

        def decorate(endpoint: _Endpoint) -> _Endpoint:
            route = Route(path, endpoint)
            route.methods = set(methods)
            self.routes.append(route)
            description = endpoint.__doc__ or ""
            self.operations.append(Operation(methods[0], path, description, reader, response, statuses))
            return endpoint

        return decorate

    def add_post(
        self, path: str, request_type: type[_R], response: Any
    ) -> Callable[[Callable[[Request, Snapshot, Callable[[], _R]], Awaitable[bytes]]], None]:
        """Return a decorator that adds a route for bodies of one type; its function returns JSON.

        The function gets the model, and a function that reads the body off the event loop.
        """
        reader: Reader[Any] = Reader(cast(Any, request_type), self.settings)

        def decorate(answer: Callable[[Request, Snapshot, Callable[[], _R]], Awaitable[bytes]]) -> None:
            async def endpoint(request: Request) -> Response:
                snapshot = self.allow(request)
                body = await request.body()
                return _json(await answer(request, snapshot, lambda: reader.read_body(body)))

            endpoint.__doc__ = answer.__doc__
            self.add(path, response, 401, 404, 413, 422, 503, reader=reader, methods=("POST",))(endpoint)

        return decorate

    def check_key(self, request: Request) -> None:
        """Refuse a caller without the key."""
        self.service.check_key(request.headers.get("authorization"), request.headers.get("x-api-key"))

    def allow(self, request: Request) -> Snapshot:
        """Return the model in use, for a caller who has the key."""
        self.check_key(request)
        return self.service.current

    async def run(self, request: Request, work: Callable[..., _T], *args: Any) -> _T:
        """Do a part of the work for a request, off the event loop."""
        return await self.service.queue.run(request.receive, work, *args)


def _add_lists(api: _Api) -> None:
    @api.add_post("/v1/recommend", _requests.RecommendRequest, _responses.SingleRecommendation)
    async def recommend(request: Request, snapshot: Snapshot, read: Callable[[], _requests.RecommendRequest]) -> bytes:
        """Recommend items for a history, or for a user whom the model knows by id."""
        return await api.run(request, lambda: encode(_handlers.recommend(snapshot, read())))

    @api.add_post("/v1/recommend/batch", _requests.BatchRequest, _responses.Recommendations)
    async def recommend_batch(
        request: Request, snapshot: Snapshot, read: Callable[[], _requests.BatchRequest]
    ) -> bytes:
        """Recommend items for several histories, or users."""
        parts, options = await api.run(request, lambda: _handlers.split_batch(snapshot, read()))
        lists = [await api.run(request, _handlers.recommend_part, snapshot, part, options) for part in parts]
        return b'{"results":[' + b",".join(lists) + b"]}"

    @api.add_post("/v1/path", _requests.PathRequest, _responses.DialPath)
    async def path(request: Request, snapshot: Snapshot, read: Callable[[], _requests.PathRequest]) -> bytes:
        """Show how a list changes from popular items to the long tail."""
        parts, history, options = await api.run(request, lambda: _handlers.split_path(snapshot, read()))
        points = [await api.run(request, _handlers.path_part, snapshot, part, history, options) for part in parts]
        return b'{"path":[' + b",".join(points) + b"]}"

    @api.add_post("/v1/explain", _requests.ExplainRequest, _responses.Explained)
    async def explain(request: Request, snapshot: Snapshot, read: Callable[[], _requests.ExplainRequest]) -> bytes:
        """Say what each item of a history adds to the score of an item."""
        return await api.run(request, lambda: encode(_handlers.explain(snapshot, read())))


def _add_items(api: _Api) -> None:
    searches = Reader(_requests.SearchQuery, api.settings)

    @api.add("/v1/items", _responses.FoundItems, 401, 422, 503, reader=searches)
    async def search(request: Request) -> Response:
        """Find items by the words of their titles, or by id; without words, the most popular ones."""
        snapshot, query = api.allow(request), searches.read_query(request.query_params)
        return _json(await api.run(request, lambda: encode(_handlers.search(snapshot, query))))

    @api.add("/v1/items/{item:path}", Item, 401, 404, 503)
    async def item(request: Request) -> Response:
        """Return one item."""
        return _json(encode(_handlers.find_item(api.allow(request), request.path_params["item"])))

    similar_queries = Reader(_requests.SimilarQuery, api.settings)

    @api.add("/v1/similar/{item:path}", _responses.SimilarItems, 401, 404, 422, 503, reader=similar_queries)
    async def similar(request: Request) -> Response:
        """Return the items that go with one item once all others are accounted for."""
        snapshot, name = api.allow(request), request.path_params["item"]
        k = similar_queries.read_query(request.query_params).k
        return _json(await api.run(request, lambda: encode(_handlers.find_similar(snapshot, name, k))))

    @api.add("/v1/model", _responses.Model, 401, 503)
    async def model(request: Request) -> Response:
        """Say which model answers, what it was fitted to, and how much a request may ask for."""
        return _json(encode(api.allow(request).description))

    @api.add("/v1/reload", _responses.Model, 401, 403, 409, 503, methods=("POST",))
    async def reload(request: Request) -> Response:
        """Open the model folder anew; one that cannot be used leaves the old model in place."""
        api.check_key(request)  # there need not be a model yet
        return _json(encode((await api.service.reload_for_all()).description))


def _json(content: bytes) -> Response:
    return Response(content, media_type="application/json", headers={"Cache-Control": "no-store"})


# --- operations and the page -----------------------------------------------------------------------------------------


def _add_operations(api: _Api) -> None:
    service, probes = api.service, ("GET", "HEAD")  # load balancers like to ask with HEAD

    @api.add("/healthz", _responses.Status, 503, methods=probes)
    async def healthz(_: Request) -> Response:
        """Say that the process is alive, and no work hangs."""
        if service.queue.hangs:
            raise Problem(
                503, f"an answer takes longer than {service.settings.hang_seconds} seconds: restart the service"
            )
        return _json(b'{"status":"ok"}')

    @api.add("/readyz", _responses.Status, 503, methods=probes)
    async def readyz(_: Request) -> Response:
        """Say whether a model is open, and warmed up."""
        if not service.ready:
            raise Problem(503, "the model is being made ready: try again in a moment", headers={"Retry-After": "1"})
        return _json(b'{"status":"ready"}')

    collected = SharedCall(lambda: asyncio.to_thread(service.metrics.text))

    @api.add("/metrics", None)
    async def metrics(_: Request) -> Response:
        """Return the metrics for Prometheus, in its text format."""
        return Response(await collected(), media_type=CONTENT_TYPE_LATEST)


def _page_routes() -> list[Route]:
    page = read_page()

    async def send(request: Request) -> Response:
        file = page.get(request.path_params.get("name", "index.html"))
        if file is None:
            raise HTTPException(404)
        if request.headers.get("if-none-match") == file.headers["ETag"]:
            return Response(status_code=304, headers=file.headers)
        return Response(file.content, headers=file.headers)

    return [Route("/", send), Route("/static/{name:path}", send)]
