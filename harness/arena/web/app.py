"""The web application: its routes and middleware, and answers to errors."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.sessions import SessionMiddleware

from harness import __version__
from harness.arena.problems import Problem, nothing_here
from harness.arena.web import api, health, live, openid, organiser, pages, people, workers
from harness.arena.web.boards import Boards, Render
from harness.arena.web.context import Site, Visitor
from harness.arena.web.guard import Guard
from harness.arena.web.live import Watch
from harness.arena.web.renderer import Call
from harness.arena.web.rendering import page
from harness.arena.web.workers import Jobs

ROUTERS = (
    workers.router,
    api.router,
    health.router,
    people.router,
    openid.router,
    organiser.router,
    live.router,
    pages.router,
)


def application(
    site: Site,
    render: Render | None = None,
    compare: Call = run_in_threadpool,
    local: bool = False,
) -> FastAPI:
    """Return the web service.

    render, compare: use other processes; by default, this one does so itself. local: whether only
    this machine reaches it.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        running = [
            asyncio.create_task(app.state.watch.run()),
            asyncio.create_task(app.state.jobs.run()),
        ]
        yield
        for each in running:
            each.cancel()
        await asyncio.wait(running, timeout=2)

    app = FastAPI(
        title="matmul-arena",
        version=__version__,
        description="Submit a kernel for FP32 matrix multiplication, and watch its grading.",
        root_path=site.root,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.site = site
    app.state.watch = Watch(site)
    app.state.jobs = Jobs(site)
    app.state.boards = Boards(site, render)
    app.state.compare = compare
    for each in ROUTERS:
        app.include_router(each)
    app.add_middleware(
        SessionMiddleware,  # what goes to an OpenID provider and back, and nothing else
        secret_key=site.data_dir.secrets().cookies,
        session_cookie="arena_openid",
        max_age=600,
        path=f"{site.root}/",
        same_site="lax",
        https_only=site.settings.secure,
    )
    app.add_middleware(
        Guard,
        limits=lambda: site.rules.limits,
        answer=lambda request, problem: _negotiated_error(site, request, problem),
        secure=site.settings.secure,
        local=local,
    )
    app.add_exception_handler(Problem, _answer)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    return app


def _negotiated_error(site: Site, request: Request, problem: Problem) -> Response:
    """Answer with a problem: as JSON to programs, which send a key, and as a page to people."""
    path = request.url.path.removeprefix(site.root)
    by_program = "authorization" in request.headers
    if by_program or path.startswith(("/api/", "/healthz", "/metrics", "/live/")):
        content = {"title": problem.title, "status": problem.status, "detail": problem.detail}
        return JSONResponse(content, problem.status, problem.headers, "application/problem+json")
    retry = problem.headers.get("Retry-After") if request.method == "GET" else None
    template = "signin.html" if problem.status == 401 else "error.html"
    answer = page(
        Visitor(site, None),
        template,
        shared=True,
        status=problem.status,
        problem=problem,
        retry=retry,
        openid=site.rules.openid,
    )
    answer.headers.update(problem.headers)
    return answer


async def _answer(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)
    return _negotiated_error(request.app.state.site, request, problem)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:])
    if "path" in first["loc"]:
        return await _answer(request, nothing_here())
    return await _answer(request, Problem(422, f"In the request, {place}: {first['msg']}."))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentences = {404: nothing_here().detail, 405: "This address takes other methods."}
    problem = Problem(error.status_code, sentences.get(error.status_code, str(error.detail)))
    response = await _answer(request, problem)
    response.headers.update(error.headers or {})
    return response
