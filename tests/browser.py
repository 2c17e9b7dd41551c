"""A local page in headless Chromium, offline: run JavaScript in it, press keys, point, look.

``Browser.started()`` gives a browser for a module, ``browser.page(path)`` a page for a test. Chromium is spoken to
in its own protocol through two pipes, so nothing listens on a port, and it ends when the pipes close, even if the
tests were killed. Whatever goes wrong in a page is in ``page.errors``, whatever it asked the network for in
``page.requests``.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from chromium import Chromium, chromium

PATIENCE = 60.0
"""Seconds for any answer, on a machine that does other things as well."""

FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",  # root has none, and some containers allow none; only pages of our own are opened
    "--disable-dev-shm-usage",  # containers have little of it
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # offline, whatever a page asks for
)

KEYS = {
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
    "Home": 36,
    "End": 35,
    "PageUp": 33,
    "PageDown": 34,
    "Escape": 27,
    "Tab": 9,
    "Enter": 13,
}
"""Virtual key codes; without them a key is an event to scripts but does nothing to a slider or a button."""

# Chromium reads from its descriptor 3 and writes to 4: a child that is about to become it puts them there.
_BECOME = "import os, sys; r, w, *a = sys.argv[1:]; os.dup2(int(r), 3); os.dup2(int(w), 4); os.execv(a[0], a)"

# Two frames: scripts that wait for the next one have run, and what they did is painted.
_SETTLED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(null))))"


class BrowserError(Exception):
    """Chromium refused, ended or fell silent; or JavaScript of a test threw."""


class Browser:
    """A running Chromium."""

    def __init__(self, process: "subprocess.Popen[bytes]", reads: int, writes: int) -> None:
        self._process = process
        self._reads = reads
        self._writes = writes
        self._unread = b""
        self._number = 0
        self._pages: dict[str, Page] = {}

    @classmethod
    @contextmanager
    def started(cls) -> "Iterator[Browser]":
        """A Chromium in a profile of its own; gone at the end of the block, and all its processes."""
        home = tempfile.mkdtemp(prefix="fw-browser-")
        reads, its_writes = (_high(end) for end in os.pipe())
        its_reads, writes = (_high(end) for end in os.pipe())
        process = _start(chromium(), home, its_reads, its_writes)
        os.close(its_reads)
        os.close(its_writes)
        try:
            yield cls(process, reads, writes)
        finally:
            os.close(writes)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE)
            os.close(reads)
            shutil.rmtree(home, ignore_errors=True)

    @contextmanager
    def page(
        self,
        place: Path | str,
        *,
        headers: Mapping[str, str] | None = None,
        scheme: str = "light",
        width: int = 1280,
        height: int = 900,
        reduced_motion: bool = True,
    ) -> "Iterator[Page]":
        """A local file, or what a server on this machine shows at a URL when asked with these headers, in a tab of
        its own, loaded and painted, as seen by a user with these preferences.
        """
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(
            self, session, place if isinstance(place, str) else place.resolve().as_uri()
        )
        try:
            if headers is not None:
                self.call("Network.enable", session)
                self.call("Network.setExtraHTTPHeaders", session, headers=dict(headers))
            page.prepare(scheme, width, height, reduced_motion=reduced_motion)
            yield page
        finally:
            del self._pages[session]
            self.call("Target.closeTarget", targetId=target)

    def call(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        """One command and its result; events that come before it go to their pages."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": params}
        if session:
            command["sessionId"] = session
        data = json.dumps(command).encode() + b"\0"
        while data:
            data = data[os.write(self._writes, data) :]
        while True:
            message = self.message(method)
            if message.get("id") == self._number:
                if "error" in message:
                    raise BrowserError(f"{method}: {message['error']['message']}")
                result: dict[str, Any] = message["result"]
                return result

    def message(self, waiting_for: str) -> dict[str, Any]:
        """The next message, which has reached its page."""
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._unread:
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self._reads], [], [], left)[0]:
                raise BrowserError(f"Chromium is silent for {PATIENCE:.0f} s; waiting for {waiting_for}")
            received = os.read(self._reads, 1 << 20)
            if not received:
                raise BrowserError(f"Chromium has ended; waiting for {waiting_for}")
            self._unread += received
        first, self._unread = self._unread.split(b"\0", 1)
        message: dict[str, Any] = json.loads(first)
        if page := self._pages.get(message.get("sessionId", "")):
            page.hears(message)
        return message


class Page:
    """A page as a test sees it."""

    def __init__(self, browser: Browser, session: str, url: str) -> None:
        self._browser = browser
        self._session = session
        self._loaded = False
        self.url = url
        self.errors: list[str] = []
        self.requests: list[str] = []

    def run(self, expression: str) -> Any:
        """What an expression is in the page, as JSON; promises are awaited."""
        said = self._call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if failure := said.get("exceptionDetails"):
            raise BrowserError(f"{expression}: {_thrown(failure)}")
        return said["result"].get("value")

    def text(self, selector: str) -> str:
        """The text of the first element that matches, as displayed."""
        return str(self.run(f"document.querySelector({json.dumps(selector)}).innerText"))

    def press(self, *keys: str) -> None:
        """Press keys, one after the other: a character, or a name of ``KEYS``."""
        for key in keys:
            press = {"key": key, "windowsVirtualKeyCode": KEYS.get(key, 0)}
            if len(key) == 1:
                press |= {"text": key}
            elif key == "Enter":
                press |= {"text": "\r"}
            self._call("Input.dispatchKeyEvent", type="keyDown", **press)
            self._call("Input.dispatchKeyEvent", type="keyUp", **press)
        self.settle()

    def hover(self, selector: str) -> None:
        """Point at the middle of the first element that matches."""
        self._mouse("mouseMoved", *self._middle(selector))
        self.settle()

    def click(self, selector: str) -> None:
        """Click on the middle of the first element that matches."""
        x, y = self._middle(selector)
        self._mouse("mouseMoved", x, y)
        for event in ("mousePressed", "mouseReleased"):
            self._mouse(event, x, y, button="left", clickCount=1)
        self.settle()

    def settle(self) -> None:
        """Wait until what was begun is painted."""
        self.run(_SETTLED)

    def screenshot(self, path: Path | None = None, *, whole: bool = False) -> bytes:
        """The page as a PNG, also in a file if wanted; ``whole``: below the fold, too."""
        data = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        png = base64.b64decode(data)
        if path is not None:
            path.write_bytes(png)
        return png

    def prepare(self, scheme: str, width: int, height: int, *, reduced_motion: bool) -> None:
        """Set the user's preferences, go there, and wait until it is painted."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        motion = "reduce" if reduced_motion else "no-preference"
        preferences = {"prefers-color-scheme": scheme, "prefers-reduced-motion": motion}
        self._call(
            "Emulation.setEmulatedMedia",
            features=[{"name": name, "value": value} for name, value in preferences.items()],
        )
        went = self._call("Page.navigate", url=self.url)
        if "errorText" in went:
            raise BrowserError(f"{self.url}: {went['errorText']}")
        while not self._loaded:
            self._browser.message(f"{self.url} to load")
        self.settle()

    def hears(self, message: dict[str, Any]) -> None:
        """Keep what an event says."""
        event, params = message.get("method"), message.get("params", {})
        if event == "Page.loadEventFired":
            self._loaded = True
        elif event == "Runtime.exceptionThrown":
            self.errors.append(_thrown(params["exceptionDetails"]))
        elif event == "Runtime.consoleAPICalled" and params["type"] in {"error", "warning", "assert"}:
            self.errors.append(" ".join(str(each.get("value", each)) for each in params["args"]))
        elif event == "Log.entryAdded" and params["entry"]["level"] in {"error", "warning"}:
            self.errors.append(params["entry"]["text"])  # what the content security policy refused is here
        elif event == "Network.requestWillBeSent" and params["request"]["url"] != self.url:
            self.requests.append(params["request"]["url"])

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def _mouse(self, event: str, x: float, y: float, **more: Any) -> None:
        self._call("Input.dispatchMouseEvent", type=event, x=x, y=y, **more)

    def _middle(self, selector: str) -> tuple[float, float]:
        """Where it is, brought into view."""
        x, y = self.run(
            f"(() => {{ const it = document.querySelector({json.dumps(selector)});"
            " it.scrollIntoView({block: 'center', behavior: 'instant'}); const box = it.getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2] })()"
        )
        return x, y


def _start(chosen: Chromium, home: str, reads: int, writes: int) -> "subprocess.Popen[bytes]":
    become = [sys.executable, "-I", "-S", "-c", _BECOME, str(reads), str(writes)]
    return subprocess.Popen(
        [*become, chosen.executable, *FLAGS, f"--user-data-dir={home}", "about:blank"],
        env={**os.environ, **chosen.environment, "HOME": home},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(reads, writes),
        start_new_session=True,  # a process group of its own, to end all of it
    )


def _high(descriptor: int) -> int:
    """The descriptor, moved out of the way of 3 and 4."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved


def _thrown(details: dict[str, Any]) -> str:
    return str(details.get("exception", {}).get("description", details["text"]))
