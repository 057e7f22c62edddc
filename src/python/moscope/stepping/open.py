# SPDX-License-Identifier: BSD-3-Clause
"""The outputs of `moscope step` for a history: it prints the trace, writes the page, or serves the page."""

from pathlib import Path

from moscope.cli import Shared
from moscope.errors import OK, UserError
from moscope.stepping import page
from moscope.stepping.examples import Example
from moscope.stepping.history import Document, run
from moscope.stepping.spec import Spec
from moscope.traces.document import exit_code
from moscope.traces.files import check_target, write_folder, write_whole


def of_spec(spec: Spec, example: Example | None) -> Document:
    document = run(spec)
    return {**document, "example": example.shown_with(spec)} if example else document


def check(html: Path | None, port: int) -> None:
    """Reports errors in options before any work."""
    if not 0 <= port < 1 << 16:
        raise UserError(f"--port: {port}: expected 0 to 65535")
    check_target(html, ".html")


def show(shared: Shared, document: Document, spec: Spec | None, html: Path | None, port: int) -> int:
    """Shows a history. `spec`: the spec that the page can change; None if it can change nothing. Returns the exit code:
    that of `moscope trace`, or 0 if a session was served, in which the script can change."""
    if shared.out and (remark := write_folder(shared.out, document["trace"])):
        shared.say(remark)
    if html:
        write_whole(html, page.html(document).encode())
        shared.say(f"wrote {html}")
    if shared.json:
        shared.result(document["trace"])
    elif not html:
        return serve(shared, document, spec, port)
    return exit_code(document["trace"])


def serve(shared: Shared, document: Document, spec: Spec | None, port: int) -> int:
    """Opens the page and answers it until the user interrupts."""
    import threading
    import webbrowser

    from moscope.stepping.server import Session
    from moscope.stepping.server import serve as run_server

    def ready(address: str) -> None:
        shared.say(f"{address} shows it; Ctrl-C ends")
        # A browser that runs in this terminal returns only when the user quits it, so it runs in another thread.
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    run_server(Session(document, spec), port, ready)
    return OK
