# SPDX-License-Identifier: BSD-3-Clause
"""A headless Chromium, controlled through a pipe (Chrome DevTools Protocol, messages that end in NUL). It opens a page at a given
width, evaluates expressions, takes pictures, and reports script errors.
"""

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

# Elements that extend beyond the page, labels that extend beyond their cell, and text that extends beyond its figure. The configuration
# may scroll, and tables of a wide page.
CUT_OFF = """
(() => {
  const found = [], width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) found.push(`page ${document.documentElement.scrollWidth} > ${width}`);
  for (const e of document.querySelectorAll("main *")) {
    if (e.closest(width < 640 ? "pre.scroll" : ".scroll") && !e.matches(".scroll")) continue;
    if (e.closest("svg") && !e.matches("svg") || e.matches("caption")) continue;
    const r = e.getBoundingClientRect();
    if (r.width && (r.right > width + 0.5 || r.left < -0.5)) found.push(`${e.tagName} ${e.className} ${r.left}..${r.right}`);
  }
  for (const e of document.querySelectorAll("td[data-label]")) {
    const label = getComputedStyle(e, "::before");
    if (label.content === "none" || !e.clientHeight) continue;
    if (parseFloat(label.height) > e.clientHeight || label.whiteSpace === "nowrap") found.push(`label ${label.content}`);
  }
  for (const s of document.querySelectorAll("svg")) {
    const f = s.getBoundingClientRect();
    if (!f.width) continue;
    for (const t of s.querySelectorAll("text")) {
      const r = t.getBoundingClientRect();
      if (r.left < f.left - 1 || r.right > f.right + 1 || r.top < f.top - 1 || r.bottom > f.bottom + 1)
        found.push(`text "${t.textContent}" of ${s.closest("figure").id}`);
    }
  }
  return found;
})()
"""


SECONDS = 180  # for what takes a moment on a quiet host


def find() -> str | None:
    return next((path for name in ("chromium", "chromium-browser", "google-chrome", "chrome") if (path := shutil.which(name))), None)


class Page:
    """One page in one browser process; use as a context manager."""

    def __init__(self, file: Path, width: int, height: int = 900, dark: bool = False, profile: Path | None = None) -> None:
        self.errors: list[str] = []
        self._next = 0
        self._buffer = b""
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()

        def places() -> None:  # the browser reads 3 and writes 4
            reading, writing = os.dup(to_browser), os.dup(from_browser)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        options = [f"--user-data-dir={profile}"] if profile else []
        self._process = subprocess.Popen(
            [find() or "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--hide-scrollbars",
             "--remote-debugging-pipe", *options, "about:blank"], close_fds=False, preexec_fn=places, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        os.set_blocking(self._in, False)
        self._session = ""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")
        self.requests: list[str] = []
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self._call("Page.navigate", url=file.resolve().as_uri())
        end = time.monotonic() + SECONDS
        while self.ask("document.readyState + (location.protocol == 'file:')") != "completetrue" and time.monotonic() < end:
            time.sleep(0.05)

    def __enter__(self) -> "Page":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(timeout=SECONDS)
        os.close(self._in)
        os.close(self._out)

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._next += 1
        message = {"id": self._next, "method": method, "params": parameters, **({"sessionId": self._session} if self._session else {})}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            answer = self._message()
            if answer is None:
                time.sleep(0.005)
            elif answer.get("id") == self._next:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])
            else:
                self._event(answer)
        raise TimeoutError(method)

    def _event(self, event: dict[str, Any]) -> None:
        method, p = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(str(p["exceptionDetails"].get("text")))
        elif method == "Log.entryAdded" and p["entry"]["level"] == "error":
            self.errors.append(str(p["entry"]["text"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(str(p["request"]["url"]))

    def _message(self) -> dict[str, Any] | None:
        if b"\0" not in self._buffer:
            try:
                self._buffer += os.read(self._in, 1 << 20)
            except BlockingIOError:
                return None
        if b"\0" not in self._buffer:
            return None
        one, self._buffer = self._buffer.split(b"\0", 1)
        return dict(json.loads(one))

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        got = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            raise RuntimeError(got["exceptionDetails"])
        return got["result"].get("value")

    def picture(self, file: Path) -> None:
        """The whole page as PNG."""
        got = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(got["data"]))


def faults(page: Page) -> list[str]:
    """Elements that are cut off, with details closed and open; script errors; requests for files elsewhere."""
    found = list(page.ask(CUT_OFF))
    page.ask('document.querySelectorAll("details").forEach(d => d.open = true)')
    found += page.ask(CUT_OFF)
    return found + page.errors + [r for r in page.requests if not r.startswith(("file:", "data:"))]
