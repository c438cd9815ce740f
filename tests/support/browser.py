"""A headless Chromium, driven over pipes: nothing beyond the standard library is needed."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    # Whatever a page asks of the network fails, and is an error on its console.
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
PATIENCE = 300.0  # seconds, on a machine with much else to do
# Keys as Chromium names them.
CODES = {"Tab": 9, "Escape": 27, "ArrowRight": 39, "ArrowLeft": 37, " ": 32}


def executable() -> str | None:
    """Return the path of a Chromium, None if there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@dataclass
class Browser:
    """A running Chromium with one page.

    Parameters
    ----------
    process : subprocess.Popen
    commands, answers : int
        Descriptors of the pipes.
    """

    process: subprocess.Popen[bytes]
    commands: int
    answers: int
    session: str = ""
    count: int = 0
    waiting: bytes = b""
    events: list[dict[str, Any]] = field(default_factory=list)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its answer."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self.count:
                assert "error" not in found, f"{method}: {found['error']}"
                answer: dict[str, Any] = found["result"]
                return answer
            self.events.append(found)

    def open(self, page: Path, width: int = 1280, place: str = "") -> list[str]:
        """Load a page and return what it complains about on its console, and failed loads."""
        height, scale = 900, 1
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=scale, mobile=width < 600,
        )  # fmt: skip
        self.ask("Page.navigate", url="about:blank")
        self.events.clear()
        self.ask("Page.navigate", url=page.resolve().as_uri() + place)
        self._wait_for("Page.loadEventFired")
        self.run("document.fonts.ready.then(() => true)")
        return [text for event in self.events for text in _complaints(event)]

    def run(self, script: str) -> Any:
        """Return the value of an expression on the page, awaited."""
        answer = self.ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key."""
        described = {"key": key, "code": key, "windowsVirtualKeyCode": CODES[key]}
        for kind in ("rawKeyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, **described)

    def media(self, kind: str, scheme: str = "") -> None:
        """Show pages as on paper ("print") or as ever (""), in a `scheme` of colours if given."""
        colours = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", media=kind, features=colours)

    def picture(self, path: Path, height: int = 0) -> None:
        """Write a PNG of the page, of its first `height` pixels if given."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {
            "x": 0, "y": 0, "width": size["width"], "height": height or min(size["height"], 16000),
            "scale": 1,
        }  # fmt: skip
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))

    def paper(self) -> bytes:
        """Return the page as PDF."""
        return base64.b64decode(self.ask("Page.printToPDF", printBackground=False)["data"])

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self.waiting:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self.answers], [], [], max(0.0, left))
            assert ready, "Chromium does not answer"
            part = os.read(self.answers, 1 << 16)
            assert part, f"Chromium ended: {self.process.poll()}"
            self.waiting += part
        text, _, self.waiting = self.waiting.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def _wait_for(self, method: str) -> None:
        while all(event.get("method") != method for event in self.events):
            self.events.append(self._next())


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Start a Chromium that keeps what it keeps in `folder`, and end it."""
    path = executable()
    assert path is not None
    (read, commands), (answers, write) = os.pipe(), os.pipe()
    # The program reads from descriptor 3 and writes to 4: ours must be others.
    high = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (read, write)]
    os.close(read)
    os.close(write)
    command = [path, *OPTIONS, f"--user-data-dir={folder}", "--remote-debugging-pipe"]
    process = subprocess.Popen(
        ["bash", "-c", f'exec "$@" 3<&{high[0]} 4>&{high[1]}', "bash", *command],
        pass_fds=high,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(folder)},
    )
    for end in high:
        os.close(end)
    found = Browser(process, commands, answers)
    try:
        target = found.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = found.ask("Target.attachToTarget", targetId=target, flatten=True)
        found.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            found.ask(f"{domain}.enable")
        yield found
    finally:
        process.kill()
        process.wait()
        os.close(commands)
        os.close(answers)


def _complaints(event: dict[str, Any]) -> Iterator[str]:
    params = event.get("params", {})
    match event.get("method"):
        case "Runtime.exceptionThrown":
            yield str(params["exceptionDetails"].get("text"))
        case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
            yield str(params["args"])
        case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
            yield str(params["entry"]["text"])
        case "Network.loadingFailed":
            yield f"not loaded: {params['errorText']}"
        case "Network.requestWillBeSent":
            address = params["request"]["url"]
            if not address.startswith(("file:", "data:", "about:")):
                yield f"asks the network: {address}"
