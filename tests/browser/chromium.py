"""A browser for tests: Chromium without a window, told what to do over a pair of pipes.

The browser's own protocol is JSON with a zero byte after each message, so that nothing has to be
installed beside the browser.
"""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find():
    """The browser's program, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page of a browser; use it in a with statement."""

    def __init__(self, width=1200, height=900):
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        words = [
            find(),
            "--headless=new",
            "--no-sandbox",  # the superuser of a container may not have one
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--hide-scrollbars",
            "--remote-debugging-pipe",
            f"--user-data-dir={self._profile.name}",
            f"--window-size={width},{height}",
            "about:blank",
        ]
        # The browser reads from 3 and writes to 4; a shell puts the pipes there.
        move = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", move, "bash", *words],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._number, self._rest, self._session = 0, b"", None
        self.events = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._process.terminate()
        self._process.wait(20)
        os.close(self._write)
        os.close(self._read)
        self._profile.cleanup()

    def send(self, method, **parameters):
        """Ask the browser, and wait for its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _next(self):
        while b"\0" not in self._rest:
            more = os.read(self._read, 1 << 20)
            if not more:
                raise RuntimeError("The browser has ended.")
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def resize(self, width, height):
        """A window, or a telephone, of this size."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.send("Emulation.setDeviceMetricsOverride", **size)

    def open(self, path):
        """Show a file from the disk, and wait until it is there."""
        self.events.clear()
        self.send("Page.navigate", url=Path(path).resolve().as_uri())
        self.wait("document.readyState === 'complete'")

    def wait(self, condition):
        """Until an expression is true."""
        self.wait_for(lambda: self.value(condition))

    def wait_for(self, condition, tries=200):
        """Until a function returns something true."""
        for _ in range(tries):
            with contextlib.suppress(RuntimeError):  # between two pages
                if condition():
                    return
            time.sleep(0.05)
        raise AssertionError(f"{condition} did not become true")

    def value(self, expression):
        """What an expression gives in the page."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def click(self, selector, x=None, y=None):
        """A real click of the mouse on an element: its centre, or a place in it."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.value(f"{found}.scrollIntoView({{block: 'center', inline: 'center'}})")
        box = self.value(f"(({found}).getBoundingClientRect()).toJSON()")
        at = {
            "x": box["x"] + (box["width"] / 2 if x is None else x),
            "y": box["y"] + (box["height"] / 2 if y is None else y),
        }
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **at)

    def press(self, key):
        """A key of the keyboard, by its name."""
        number = {"Tab": 9, "Enter": 13, "Backspace": 8}.get(key, 0)
        for kind in ("keyDown", "keyUp"):
            about = {"key": key, "code": key, "windowsVirtualKeyCode": number}
            self.send("Input.dispatchKeyEvent", type=kind, **about)

    def screenshot(self, path):
        """The whole page as a picture."""
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        Path(path).write_bytes(base64.b64decode(answer["data"]))

    def problems(self):
        """Errors of the script, and everything that the page asked of anybody else."""
        self.value("1")
        found = []
        for event in self.events:
            method, what = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(what["exceptionDetails"]["exception"]["description"])
            elif method == "Log.entryAdded" and what["entry"]["level"] == "error":
                found.append(what["entry"]["text"])
            elif method == "Network.requestWillBeSent":
                url = what["request"]["url"]
                if not url.startswith(("file:", "data:")):
                    found.append(f"asked {url}")
        return found
