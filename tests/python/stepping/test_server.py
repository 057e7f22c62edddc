# SPDX-License-Identifier: BSD-3-Clause
"""The local server: histories on request, errors as documents, nothing for other sites, a clean end."""

import functools
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

import pytest

from moscope import jsonio, paths
from moscope.stepping.spec import Spec

SPEC = Spec("c0 ld A@n0; c1 st A@n0", "small")


def ask(url: str, body: object = None, **headers: str) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=120) as got:
            text = got.read()
            return got.status, json.loads(text) if text[:1] in b"{[" else text
    except urllib.error.HTTPError as error:
        text = error.read()
        return error.code, json.loads(text) if text[:1] == b"{" else text


def test_the_first_history_is_there_and_the_page_holds_it(address: str) -> None:
    status, history = ask(address + "history")
    assert status == 200
    jsonio.validate(history)
    assert ask(address)[1].startswith(b"<!doctype html>")


def test_a_posted_spec_is_run(address: str) -> None:
    status, history = ask(address + "history", {"script": "c0 ld B@n1"})
    assert status == 200
    assert [a["text"] for a in history["trace"]["accesses"]] == ["c0 ld B@n1"]
    assert history["spec"]["machine"] == "small"


@pytest.mark.parametrize("spec, error", [
    ({"script": "c0 ld A@n0; c0"}, "expected"), ({"sript": ""}, "no key"), ([], "expected an object"), ({"machine": "none"}, "expected"),
    ({"protocol": "/etc/passwd"}, "expected"), ({"added": [{"at": -1}]}, "expected"),
    ({"set": ["protocol=x.slicc"]}, "expected"), ({"cores": 0}, "expected"), ({"cores": "4"}, "expected"),
    ({"homes": 1000}, "expected"), ({"caches": "huge"}, "expected"), ({"checked": 1}, "expected"),
], ids=str)
def test_a_mistake_is_answered_with_an_error_document(address: str, spec: object, error: str) -> None:
    status, answer = ask(address + "history", spec)
    assert status == 422 and answer["kind"] == "user error"
    assert error in answer["error"] and "Traceback" not in answer["error"]


@pytest.mark.parametrize("name", ["msi-race-silent-drop", "msi-race-write-back", "moesi-life"])
def test_a_change_of_an_example_keeps_its_machine_and_its_history(address: str, name: str) -> None:
    _, example = ask(f"{address}examples/{name}")
    end = max(t["at"] for t in example["trace"]["transitions"])
    status, changed = ask(address + "history", {**example["spec"], "added": [{"at": end, "core": 0, "op": "ld", "address": "A@n0"}]})
    assert status == 200
    assert changed["trace"]["transitions"][:len(example["trace"]["transitions"])] == example["trace"]["transitions"]


def test_a_request_to_another_name_is_refused(address: str) -> None:
    assert ask(address + "history", Host="elsewhere.example")[0] == 403


def test_a_form_of_another_site_is_refused(address: str) -> None:
    assert ask(address + "history", {"script": "c0 ld A@n0"}, **{"Content-Type": "text/plain"})[0] == 422


def test_an_interruption_ends_the_server_with_130() -> None:
    env = {**os.environ, "PYTHONPATH": str(paths.root() / "src/python"), "BROWSER": "true"}
    command = [sys.executable, "-P", "-m", "moscope", "step", SPEC.script, "--machine", "small"]
    # A test run in the background ignores SIGINT, and its children inherit that.
    heard = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env, preexec_fn=heard) as process:
        try:
            assert process.stderr
            line = process.stderr.readline()
            assert re.match(r"http://127.0.0.1:\d+/ ", line), line
            process.send_signal(signal.SIGINT)
            assert process.wait(120) == 130
            assert "Traceback" not in process.stderr.read()
        finally:
            process.kill()
