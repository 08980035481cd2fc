"""The application: which question goes where, and what may come back."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect

from relae import __version__
from relae.catalog import Item
from relae.errors import RelaeError
from relae.serve import _answers, _questions, _replies
from relae.serve._middleware import LimitBody, LimitHosts, Observe
from relae.serve._page import read_page
from relae.serve._problem import Problem, error_body
from relae.serve._schema import Schemas
from relae.serve._service import Service
from relae.serve._settings import Settings
from relae.serve._shared import Shared
from relae.serve._snapshot import Snapshot

_Question = TypeVar("_Question")
_T = TypeVar("_T")
_Endpoint = Callable[[Request], Awaitable[Response]]
_Decorator = Callable[[_Endpoint], _Endpoint]

_ABOUT = """Recommendations with dials from popular to rare.

A question may turn the dials of a linear model, at no new fit: `xi` (ξ), `item_norm` (α) and `propensity` (γ). A dial
that it leaves out stands where the model has it, which `GET /v1/model` tells; a larger α or γ favours items that fewer
people have. With n the users of an item and p its propensity, a history x scores

    score_j = Σ_i x_i n_i^α B_ij n_j^−α · p_j^−γ

and explanations sum to that. `/v1/path` shows what a dial does to a list: along ξ for the price of one list, along α
for the price of one each."""
_ERRORS = {
    401: "The API key is missing or wrong.",
    403: "This service has no API key, and so no reload over HTTP.",
    404: "There is no such item or user.",
    409: "The new model cannot be used; the old one stays.",
    413: "The body, or the answer that it asks for, is too large.",
    422: "The question cannot be understood, or not be answered by this model.",
    503: "Not ready yet, or too busy: try again.",
}
_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}


def build(settings: Settings, service: Service) -> FastAPI:
    """Return the application around a service."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with service.running():
            yield

    app = FastAPI(
        title="relae",
        version=__version__,
        description=_ABOUT,
        lifespan=lifespan,
        docs_url=None,  # these two load from another host
        redoc_url=None,
        redirect_slashes=False,
        middleware=[
            Middleware(Observe, metrics=service.metrics, log=settings.log),
            Middleware(LimitHosts, host=settings.host, allowed=settings.allowed_hosts),
            *([_cors(settings)] if settings.cors else []),
            Middleware(LimitBody, most=settings.max_body_bytes),
        ],
    )
    _add_errors(app)
    _add_questions(app, settings, service)
    _add_operations(app, service)
    _add_page(app)
    _add_security(app, settings)
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


# --- the API -------------------------------------------------------------------------------------------------------


class _Desk:
    """What all routes of the API share: who may ask, whose turn it is, and how a route is documented."""

    def __init__(self, app: FastAPI, settings: Settings, service: Service) -> None:
        self.app, self.settings, self.service, self.schemas = app, settings, service, Schemas(settings)
        self.locked: dict[str, Any] = {} if settings.api_key is None else {"security": [{"bearer": []}, {"header": []}]}

    def check_key(self, request: Request) -> None:
        """Refuse a caller without the key."""
        self.service.check_key(request.headers.get("authorization"), request.headers.get("x-api-key"))

    def allowed(self, request: Request) -> Snapshot:
        """Return the model to ask, if the caller may ask it."""
        self.check_key(request)
        return self.service.current

    async def take(self, request: Request, work: Callable[..., _T], *args: Any) -> _T:
        """Do a part of the work for a request."""
        return await self.service.turns.take(request.receive, work, *args)

    async def asked(
        self,
        request: Request,
        read: Callable[[bytes, Settings], _Question],
        reply: Callable[[Snapshot, _Question], object],
    ) -> Response:
        """Read a body, and reply to it in one turn."""
        snapshot = self.allowed(request)
        body = await request.body()
        return _json(await self.take(request, lambda: _replies.encode(reply(snapshot, read(body, self.settings)))))

    def route(self, method: str, path: str, answer: type, schema: dict[str, Any], *statuses: int) -> _Decorator:
        """Return a decorator that adds a route to the application."""
        decorator: _Decorator = self.app.api_route(
            path,
            methods=[method],
            response_model=None,
            responses=_documented(answer, *statuses, 503),
            openapi_extra={**schema, **self.locked},
            tags=["v1"],
            operation_id=path.removeprefix("/v1/").split("/{")[0].replace("/", "_")
            + ("_by_id" if path.startswith("/v1/items/") else ""),
        )
        return decorator


def _add_questions(app: FastAPI, settings: Settings, service: Service) -> None:
    desk = _Desk(app, settings, service)
    _add_lists(desk)
    _add_items(desk)


def _add_lists(desk: _Desk) -> None:
    @desk.route("POST", "/v1/recommend", _answers.SingleRecommendation, desk.schemas.recommend(), 401, 404, 413, 422)
    async def recommend(request: Request) -> Response:
        """Recommend items for a history, or for a user whom the model knows by id."""
        return await desk.asked(request, _questions.read_recommend, _replies.recommend)

    @desk.route("POST", "/v1/recommend/batch", _answers.Recommendations, desk.schemas.batch(), 401, 404, 413, 422)
    async def recommend_batch(request: Request) -> Response:
        """Recommend items for several histories, or users."""
        snapshot = desk.allowed(request)
        body = await request.body()
        question = await desk.take(request, _questions.read_batch, body, desk.settings)
        turns, options = await desk.take(request, _replies.batch_turns, snapshot, question)
        parts = [await desk.take(request, _replies.batch_turn, snapshot, turn, options) for turn in turns]
        return _json(b'{"results":[' + b",".join(parts) + b"]}")

    @desk.route("POST", "/v1/path", _answers.DialPath, desk.schemas.path(), 401, 404, 413, 422)
    async def path(request: Request) -> Response:
        """Show how a list changes from popular items to the long tail."""
        snapshot = desk.allowed(request)
        body = await request.body()
        question = await desk.take(request, _questions.read_path, body, desk.settings)
        turns, taste, options = await desk.take(request, _replies.path_turns, snapshot, question)
        along_xi = question.item_norms is None
        parts = [
            await desk.take(request, _replies.path_turn, snapshot, turn, along_xi, taste, options) for turn in turns
        ]
        return _json(b'{"path":[' + b",".join(parts) + b"]}")

    @desk.route("POST", "/v1/explain", _answers.Explained, desk.schemas.explain(), 401, 404, 413, 422)
    async def explain(request: Request) -> Response:
        """Say what each item of a history adds to the score of an item."""
        return await desk.asked(request, _questions.read_explain, _replies.explain)


def _add_items(desk: _Desk) -> None:
    @desk.route("GET", "/v1/items", _answers.FoundItems, desk.schemas.search(), 401, 422)
    async def search(request: Request) -> Response:
        """Find items by the words of their titles, or by id; without words, the most popular ones."""
        snapshot = desk.allowed(request)
        text = _questions.read_search(request.query_params)
        limit = _questions.read_whole(request.query_params, "limit", 20, desk.settings.max_k)
        return _json(await desk.take(request, lambda: _replies.encode(_replies.search(snapshot, text, limit))))

    @desk.route("GET", "/v1/items/{item:path}", Item, desk.schemas.item(), 401, 404)
    async def item(request: Request) -> Response:
        """Return one item."""
        snapshot, name = desk.allowed(request), request.path_params["item"]
        return _json(_replies.encode(_replies.item(snapshot, name)))

    @desk.route("GET", "/v1/similar/{item:path}", _answers.SimilarItems, desk.schemas.similar(), 401, 404, 422)
    async def similar(request: Request) -> Response:
        """Return the items that go with one item once all others are accounted for."""
        snapshot, name = desk.allowed(request), request.path_params["item"]
        k = _questions.read_whole(request.query_params, "k", 10, desk.settings.max_k)
        return _json(await desk.take(request, lambda: _replies.encode(_replies.similar(snapshot, name, k))))

    @desk.route("GET", "/v1/model", _answers.Model, {}, 401)
    async def model(request: Request) -> Response:
        """Say which model answers, what it was fitted to, and how much may be asked."""
        return _json(_replies.encode(desk.allowed(request).description))

    @desk.route("POST", "/v1/reload", _answers.Model, {}, 401, 403, 409)
    async def reload(request: Request) -> Response:
        """Open the model folder anew; one that cannot be used leaves the old model in place."""
        desk.check_key(request)  # there need not be a model yet
        return _json(_replies.encode((await desk.service.reload_for_all()).description))


def _json(content: bytes) -> Response:
    return Response(content, media_type="application/json", headers={"Cache-Control": "no-store"})


# --- operations, the page ------------------------------------------------------------------------------------------


def _add_operations(app: FastAPI, service: Service) -> None:
    @app.get("/healthz", response_model=None, responses=_documented(_answers.Status, 503), tags=["operations"])
    async def healthz() -> Response:
        """Say that the process is alive, and no work hangs."""
        if service.turns.hangs:
            raise Problem(
                503, f"an answer takes longer than {service.settings.hang_seconds} seconds: restart the service"
            )
        return _json(b'{"status":"ok"}')

    @app.get("/readyz", response_model=None, responses=_documented(_answers.Status, 503), tags=["operations"])
    async def readyz() -> Response:
        """Say whether a model is open, and warmed up."""
        if not service.ready:
            raise Problem(503, "the model is being made ready: try again in a moment", headers={"Retry-After": "1"})
        return _json(b'{"status":"ready"}')

    # load balancers like to ask with HEAD
    app.add_api_route("/healthz", healthz, methods=["HEAD"], response_model=None, include_in_schema=False)
    app.add_api_route("/readyz", readyz, methods=["HEAD"], response_model=None, include_in_schema=False)

    collected = Shared(lambda: asyncio.to_thread(service.metrics.text))
    text = {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus' text format."}

    @app.get(
        "/metrics",
        response_model=None,
        response_class=Response,
        responses={200: text},
        tags=["operations"],
    )
    async def metrics() -> Response:
        """Return what Prometheus collects."""
        return Response(await collected(), media_type=CONTENT_TYPE_LATEST)


def _add_page(app: FastAPI) -> None:
    page = read_page()

    def answer(request: Request, name: str) -> Response:
        file = page.get(name)
        if file is None:
            raise HTTPException(404)
        if request.headers.get("if-none-match") == file.headers["ETag"]:
            return Response(status_code=304, headers=file.headers)
        return Response(file.content, headers=file.headers)

    @app.api_route("/", methods=["GET", "HEAD"], response_model=None, include_in_schema=False)
    async def index(request: Request) -> Response:
        """The page."""
        return answer(request, "index.html")

    @app.api_route("/static/{name:path}", methods=["GET", "HEAD"], response_model=None, include_in_schema=False)
    async def static(request: Request) -> Response:
        """A file of the page."""
        return answer(request, request.path_params["name"])


# --- errors, and the schema ----------------------------------------------------------------------------------------


def _add_errors(app: FastAPI) -> None:
    async def problem(_: Request, error: Exception) -> Response:
        assert isinstance(error, Problem)
        return _error(error.status, error.message, error.field, error.headers)

    async def refused(_: Request, error: Exception) -> Response:
        return _error(422, str(error))

    async def unrouted(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        message = {
            404: f"there is nothing at {request.url.path[:200]}: /openapi.json lists what there is",
            405: f"{request.method} does not work on {request.url.path[:200]}: /openapi.json lists what does",
        }.get(error.status_code, str(error.detail))
        return _error(error.status_code, message, None, dict(error.headers or {}))

    async def gone(_: Request, error: Exception) -> Response:
        return Response(status_code=499)  # for the log; nobody is there to read it

    app.add_exception_handler(Problem, problem)
    app.add_exception_handler(RelaeError, refused)
    app.add_exception_handler(HTTPException, unrouted)
    app.add_exception_handler(ClientDisconnect, gone)


def _error(status: int, message: str, field: str | None = None, headers: dict[str, str] | None = None) -> Response:
    return Response(error_body(message, field), status, headers, media_type="application/json")


def _documented(answer: type, *statuses: int) -> dict[int | str, dict[str, Any]]:
    """What may come back: the answer, and errors in their one shape."""
    good: dict[int | str, dict[str, Any]] = {200: {"model": answer}}
    return good | {status: {"model": _answers.Error, "description": _ERRORS[status]} for status in statuses}


def _add_security(app: FastAPI, settings: Settings) -> None:
    """Tell of the two ways to send the key, if there is one."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        schema = plain()
        if settings.api_key is not None:
            schema.setdefault("components", {})["securitySchemes"] = _SECURITY
        return schema

    app.openapi = openapi  # type: ignore[method-assign]
