"""The server: it checks requests, passes them to the workers, and serves the built pages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from glassformer.workbench.answers import answer
from glassformer.workbench.gate import Gate
from glassformer.workbench.pool import Pool
from glassformer.workbench.wire import JOBS
from glassformer.workbench.wire.requests import ErrorAnswer, Status
from glassformer.workbench.wire.requests import Request as Asked

_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer} for status in (401, 403, 413, 422, 500, 503)
}


_KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}


def create_app(pool: Pool, *, token: str, hosts: set[str], version: str) -> Any:
    """The application, behind its gate; opening and closing it opens and closes the pool."""

    @asynccontextmanager
    async def live(_app: FastAPI) -> AsyncIterator[None]:
        await pool.open()
        try:
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
    _add_jobs(app, pool, version)
    _add_pages(app)
    return Gate(app, token=token, hosts=hosts)


def _add_jobs(app: FastAPI, pool: Pool, version: str) -> None:
    @app.get("/api/status")
    async def status() -> Status:
        return Status(version=version, waiting=pool.waiting, replaced=pool.replaced)

    for name in JOBS:
        _add_job(app, pool, name)


def _add_job(app: FastAPI, pool: Pool, name: str) -> None:
    form = JOBS[name]

    async def job(request: Request, asked: Asked) -> Response:
        return await answer(request, pool, name, asked.model_dump(), key=_key(asked))

    job.__annotations__["asked"] = form.asked
    app.post(
        f"/api/{name}",
        name=name,
        response_model=form.answered,
        description=form.asked.__doc__,
    )(job)


def _key(asked: Asked) -> str:
    """What belongs together goes to one worker, which remembers the run."""
    return "\n".join(str(getattr(asked, name, "")) for name in ("model", "text"))


def _add_pages(app: FastAPI) -> None:
    folder = files("glassformer.workbench").joinpath("static")
    known = {
        each.name: (each.read_bytes(), kind)
        for each in (folder.iterdir() if folder.is_dir() else ())
        if (kind := _KINDS.get(each.name.rpartition(".")[2])) is not None
    }

    @app.get("/{name:path}", include_in_schema=False)
    async def page(name: str) -> Response:
        """A file of the built front end; nothing else can be asked for by name."""
        found = known.get(name or "index.html")
        if found is None:
            raise HTTPException(404)
        return Response(found[0], media_type=found[1])


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
