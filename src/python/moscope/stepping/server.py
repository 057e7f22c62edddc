# SPDX-License-Identifier: BSD-3-Clause
"""The local server of a session: the page, the examples, and histories of changed specs. It listens only on 127.0.0.1, and answers
only requests that were made to that name, so that pages of other sites cannot use it.

    GET  /                  the page, with the first history
    GET  /history           the first history
    POST /history           {spec} -> the history of the first spec with the keys given; or {"error": TEXT, "kind": KIND}, status 422
    GET  /examples          [{"name", "title"}..]
    GET  /examples/NAME     its history, with the example
"""

import json
import socketserver
import threading
from collections.abc import Callable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import bottle

from moscope import buildproto, jsonio
from moscope.errors import UserError
from moscope.failures import as_error
from moscope.stepping import examples, page
from moscope.stepping.history import Document, run
from moscope.stepping.spec import Spec, changed

ADDRESS = "127.0.0.1"
MOST_BYTES = 1 << 20


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    """Uses a thread per connection, because browsers open connections that they do not use."""

    daemon_threads = True
    allow_reuse_address = True


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


class Session:
    """What a server answers with: the first history, and histories of changed specs, one run at a time."""

    def __init__(self, document: Document, spec: Spec | None) -> None:
        self.document = document
        self.spec = spec
        self.running = threading.Lock()

    def run(self, given: object) -> Document:
        if self.spec is None:
            raise UserError("spec: this page shows a run, which cannot be changed: expected a script")
        spec = changed(self.spec, given)
        self.check(spec)
        with self.running:
            return run(spec)

    def check(self, spec: Spec) -> None:
        """Checks a spec from the page. It may name supplied machines and protocols, but no files except those of the command
        line."""
        from moscope.config import machine_names

        assert self.spec is not None
        if spec.machine not in (self.spec.machine, *machine_names()):
            raise UserError(f"machine: {spec.machine!r}: expected one of " + ", ".join(machine_names()))
        if spec.protocol not in (None, self.spec.protocol, *buildproto.known_protocols()):
            raise UserError(f"protocol: {spec.protocol!r}: expected one of " + ", ".join(buildproto.known_protocols()))
        if spec.sets != self.spec.sets:
            for text in spec.sets:
                if text.split("=")[0].strip() == "protocol":
                    raise UserError("set: protocol: expected the key protocol")


def _answer(make: Callable[[], Any]) -> bytes:
    bottle.response.content_type = "application/json"
    try:
        return jsonio.dumps(make()).encode()
    except Exception as error:  # noqa: BLE001  an error is an answer, never a traceback
        known = as_error(error, "moscope step")
        bottle.response.status = 422
        # Of an option such as --example, the page's address has the name.
        return jsonio.dumps({"error": str(known).removeprefix("--"), "kind": known.kind or "user error"}).encode()


def _posted() -> object:
    request = bottle.request
    if request.content_type.split(";")[0] != "application/json":
        raise UserError(f"request: {request.content_type!r}: expected application/json")
    if request.content_length > MOST_BYTES:
        raise UserError(f"request: {request.content_length} bytes: expected at most {MOST_BYTES}")
    try:
        return json.loads(request.body.read())
    except ValueError:
        raise UserError("request: is not JSON: expected an object with keys of a spec") from None


def application(session: Session) -> bottle.Bottle:
    app = bottle.Bottle()

    @app.hook("before_request")  # type: ignore[untyped-decorator]  # bottle has no types
    def local() -> None:
        if bottle.request.get_header("Host", "").rsplit(":", 1)[0] not in (ADDRESS, "localhost"):
            raise bottle.HTTPError(403, "expected a request to 127.0.0.1")

    def of_example(name: str) -> Document:
        example = examples.load(name)
        with session.running:
            return {**run(example.spec), "example": example.as_json()}

    app.route("/", callback=lambda: page.html(session.document, live=session.spec is not None))
    app.route("/history", callback=lambda: _answer(lambda: session.document))
    app.route("/history", method="POST", callback=lambda: _answer(lambda: session.run(_posted())))
    app.route("/examples", callback=lambda: _answer(lambda: [{"name": e.name, "title": e.title}
                                                             for e in map(examples.load, examples.names())]))
    app.route("/examples/<name>", callback=lambda name: _answer(lambda: of_example(name)))
    return app


def serve(session: Session, port: int, ready: Callable[[str], None]) -> None:
    """Serves until it is interrupted; `ready` is called with the page's address. Port 0: any that is free."""
    try:
        server = make_server(ADDRESS, port, application(session), _Server, _Quiet)
    except OSError as error:
        raise UserError(f"--port: {port}: {error.strerror}: expected a free port, or 0 for any") from None
    with server:
        ready(f"http://{ADDRESS}:{server.server_port}/")
        server.serve_forever(poll_interval=0.1)


