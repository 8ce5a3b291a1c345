"""Drives headless Chromium over its DevTools pipe with nothing but the standard library.

Chromium reads commands from file descriptor 3 and answers on 4, one JSON message each, ended by a zero byte. Everything a
page logs as error, throws or fails to load is collected in Page.problems.
"""
import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe"]


def chromium_or_skip():
    program = shutil.which("chromium")
    if program is None:
        print("skipped: no chromium here; Debian's package 'chromium' has it (tools/test installs it)")
        sys.exit(SKIPPED)
    return program


class Browser:
    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="k3sim-browser-")
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()

        def move_pipes():
            # First out of the way, so that neither overwrites the other.
            a, b = os.dup(to_read), os.dup(to_write)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen([chromium_or_skip(), *FLAGS, "--user-data-dir=" + self.profile, "about:blank"],
                                        preexec_fn=move_pipes, close_fds=False, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.buffer, self.last, self.events = b"", 0, []

    def _receive(self, deadline):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.read_end], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.read_end, 1 << 20)
            if not part:
                raise EOFError("the browser ended")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, timeout=60, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write_end, data):]
        deadline = time.monotonic() + timeout
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def close(self):
        try:
            self.call("Browser.close", timeout=5)
        except (TimeoutError, EOFError, OSError, RuntimeError):
            self.process.kill()
        self.process.wait(timeout=20)
        shutil.rmtree(self.profile, ignore_errors=True)


class Page:
    """One report in a window of the given size."""

    def __init__(self, browser, path, width=1400, height=900, dark=False):
        self.browser = browser
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.resize(width, height)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        self.wait("document.readyState === 'complete' && document.documentElement.dataset.ready === 'yes'")

    def call(self, method, **parameters):
        return self.browser.call(method, session=self.session, **parameters)

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def js(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while not self.js(condition):
            if time.monotonic() > end:
                raise TimeoutError(condition)
            time.sleep(0.02)

    def frame(self):
        self.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def place(self, selector):
        """Left, top, width and height of an element, scrolled into view."""
        self.call("Page.bringToFront")  # a page behind another one draws no frames and gets no wheel
        return self.js(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}});"
                       "const r = e.getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; })()")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)
        self.frame()

    def key(self, key):
        """One stroke of a named key or of a character."""
        named = {"ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "Enter": 13}
        more = {"windowsVirtualKeyCode": named[key]} if key in named else {"text": key}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.frame()

    def drag(self, x0, y0, x1, y1):
        self.mouse("mouseMoved", x0, y0)
        self.mouse("mousePressed", x0, y0, button="left", clickCount=1)
        for step in range(1, 6):
            self.mouse("mouseMoved", x0 + (x1 - x0) * step / 5, y0 + (y1 - y0) * step / 5, button="left", buttons=1)
        self.mouse("mouseReleased", x1, y1, button="left", clickCount=1)
        self.frame()

    def screenshot(self, path):
        height = self.js("document.documentElement.scrollHeight")
        width = self.js("window.innerWidth")
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True,
                         clip={"x": 0, "y": 0, "width": width, "height": min(height, 12000), "scale": 1})["data"]
        with open(path, "wb") as out:
            out.write(base64.b64decode(data))

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def problems(self):
        """Errors in the console, uncaught exceptions and anything asked from outside the file."""
        found = list(self.js("k3.errors"))
        for e in self.browser.events:
            if e.get("sessionId") != self.session:
                continue
            p = e.get("params", {})
            if e["method"] == "Runtime.exceptionThrown":
                found.append(p["exceptionDetails"]["text"])
            if e["method"] == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning", "assert"):
                found.append(str([a.get("value", a.get("description")) for a in p["args"]]))
            if e["method"] == "Log.entryAdded" and p["entry"]["level"] == "error":
                found.append(p["entry"]["text"])
            if e["method"] == "Network.requestWillBeSent" and not p["request"]["url"].startswith(("file:", "data:")):
                found.append("asks the network for " + p["request"]["url"])
        return found
