"""A real browser to look at pages with: Chromium without a window, driven through its DevTools pipe."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--remote-debugging-pipe",
)

START = """
import fcntl, os, sys
reading, writing = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(reading, 3)
os.dup2(writing, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Begins the browser, which reads commands from the third file and writes to the fourth."""
PATIENCE = 60


class Browser:
    """Open pages, run scripts in them, and use the mouse."""

    def __init__(self, folder: Path, width: int = 1200, height: int = 900) -> None:
        if PROGRAM is None:
            raise RuntimeError("there is no Chromium")
        theirs, self.sending = os.pipe()
        self.receiving, ours = os.pipe()
        command = [PROGRAM, *OPTIONS, f"--user-data-dir={folder}", f"--window-size={width},{height}"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, str(theirs), str(ours), *command],
            pass_fds=(theirs, ours),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        os.close(ours)
        self.numbers = itertools.count(1)
        self.buffer = b""
        self.session: str | None = None
        self.complaints: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Network"):
            self.ask(f"{part}.enable")
        self.ask("Performance.enable", timeDomain="threadTicks")

    def close(self) -> None:
        """End the browser."""
        with contextlib.suppress(OSError):
            self.session = None
            self.ask("Browser.close")
        self.process.wait(timeout=PATIENCE)
        os.close(self.sending)
        os.close(self.receiving)

    def message(self) -> dict[str, Any]:
        """Wait for the next message."""
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.receiving], [], [], PATIENCE)
            read = os.read(self.receiving, 1 << 20) if ready else b""
            if not read:
                raise OSError("the browser has ended")
            self.buffer += read
        message, _, self.buffer = self.buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        if found.get("method") in ("Runtime.exceptionThrown", "Network.requestWillBeSent"):
            self.complaints.append(found["params"])
        return found

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        number = next(self.numbers)
        text = json.dumps({"id": number, "method": method, "params": params} | self.session_of())
        os.write(self.sending, text.encode() + b"\0")
        while (found := self.message()).get("id") != number:
            pass
        if "error" in found:
            raise RuntimeError(found["error"]["message"])
        result: dict[str, Any] = found["result"]
        return result

    def session_of(self) -> dict[str, str]:
        """Return what says which page is meant."""
        return {"sessionId": self.session} if self.session else {}

    def open(self, path: Path) -> float:
        """Open a file, and wait until it is there and painted; return after how many milliseconds that was."""
        self.ask("Page.navigate", url=path.as_uri())
        while self.message().get("method") != "Page.loadEventFired":
            pass
        return self.run(  # type: ignore[no-any-return]  # a number
            "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(performance.now()))))"
        )

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page; promises are waited for."""
        found = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"]["description"])
        return found["result"].get("value")

    def busy(self) -> float:
        """Return how many milliseconds the page has computed since it was opened, however busy the machine is."""
        figures = self.ask("Performance.getMetrics")["metrics"]
        seconds: float = next(figure["value"] for figure in figures if figure["name"] == "TaskDuration")
        return 1000 * seconds

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Let the mouse do something."""
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x: float, y: float, times: int = 1) -> None:
        """Click."""
        for count in range(1, times + 1):
            self.mouse("mousePressed", x, y, button="left", clickCount=count)
            self.mouse("mouseReleased", x, y, button="left", clickCount=count)

    def drag(self, x: float, y: float, to_x: float, to_y: float) -> None:
        """Press, move and let go."""
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        for part in (0.5, 1.0):
            self.mouse("mouseMoved", x + part * (to_x - x), y + part * (to_y - y), button="left", buttons=1)
        self.mouse("mouseReleased", to_x, to_y, button="left", clickCount=1)

    def picture(self) -> bytes:
        """Return what the window shows, as a PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])
