"""The server: it checks requests, passes them to the workers, and serves the built pages."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from glassformer.errors import GlassformerError
from glassformer.workbench.answers import answer
from glassformer.workbench.gate import Gate
from glassformer.workbench.library import Library
from glassformer.workbench.pool import Pool
from glassformer.workbench.routes import choose_route
from glassformer.workbench.static_files import read_static_files, say_not_built
from glassformer.workbench.wire import JOBS
from glassformer.workbench.wire.requests import ErrorAnswer, Status
from glassformer.workbench.wire.requests import Request as Asked
from glassformer.workbench.wire.runs import ModelEntry

_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer} for status in (401, 403, 413, 422, 500, 503)
}


def create_app(
    pool: Pool,
    *,
    token: str,
    hosts: set[str],
    version: str,
    library: Library | None = None,
    on_open: Callable[[], None] | None = None,
) -> Any:
    """The application, behind its gate; opening and closing it opens and closes the pool."""
    library = Library() if library is None else library

    @asynccontextmanager
    async def live(_app: FastAPI) -> AsyncIterator[None]:
        await pool.open()
        try:
            if on_open is not None:
                on_open()
            yield
        finally:
            await pool.close()

    app = FastAPI(
        title="glassformer",
        version=version,
        lifespan=live,
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        openapi_url="/api/schema",
        responses=_ERRORS,
    )
    _add_errors(app)
    _add_jobs(app, pool, library, version)
    _add_pages(app)
    return Gate(app, token=token, hosts=hosts)


def _add_jobs(app: FastAPI, pool: Pool, library: Library, version: str) -> None:
    @app.get("/api/status")
    async def status() -> Status:
        return Status(version=version, waiting=pool.waiting, replaced=pool.replaced)

    @app.get("/api/models")
    def models() -> list[ModelEntry]:  # in a thread: it reads files
        library.refresh()
        return [ModelEntry(**source.as_entry()) for source in library.sources.values()]

    for name in JOBS:
        _add_job(app, pool, library, name)


def _add_job(app: FastAPI, pool: Pool, library: Library, name: str) -> None:
    form = JOBS[name]

    async def job(request: Request, asked: Asked) -> Response:
        arguments = asked.model_dump()
        try:
            route = choose_route(name, arguments, library)
        except GlassformerError as error:
            return JSONResponse({"error": str(error)}, 422)
        return await answer(request, pool, name, arguments, route=route)

    job.__annotations__["asked"] = form.asked
    app.post(
        f"/api/{name}",
        name=name,
        response_model=form.answered,
        description=form.asked.__doc__,
    )(job)


def _add_pages(app: FastAPI) -> None:
    known = read_static_files()

    @app.get("/{name:path}", include_in_schema=False)
    async def page(request: Request, name: str) -> Response:
        """A file of the built front end; nothing else can be asked for by name."""
        if name in known:
            return known[name].respond(request)
        if name in ("", "index.html"):
            return say_not_built()
        raise HTTPException(404)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    async def refuse(_request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        place = ".".join(str(each) for each in first["loc"] if each != "body")
        return JSONResponse({"error": f"{place or 'The request'}: {first['msg']}."}, 422)

    @app.exception_handler(HTTPException)
    async def explain(_request: Request, error: HTTPException) -> JSONResponse:
        said = {404: "There is nothing at this address.", 405: "This address is asked otherwise."}
        sentence = said.get(error.status_code, str(error.detail))
        return JSONResponse({"error": sentence}, error.status_code)
