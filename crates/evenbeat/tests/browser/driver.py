"""What the browser scripts share: Chromium of the system, sessions, and a watch for what no page may do.

A script gets its server from the environment:

  EVENBEAT_URL           http://127.0.0.1:PORT
  EVENBEAT_ADMIN_TOKEN   a token for everything
  EVENBEAT_VIEWER_TOKEN  a token that may only look

It collects findings and ends with 1 if there are any, so that one run shows everything that is wrong.
"""

import contextlib
import json
import os
import sys
import tempfile
import traceback
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import axe_playwright_python
from playwright.sync_api import expect, sync_playwright

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Containers often have a tiny /dev/shm.
    "--disable-dev-shm-usage",
]

# A bound for a busy machine, not a measure of the pages.
PATIENCE_MS = 30_000

DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
NARROW = {"width": 320, "height": 640}

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")

# The listener is there before the page's own scripts. The browser also logs violations, but not in every case as an error.
NOTE_VIOLATIONS = """
window.__violations = [];
document.addEventListener("securitypolicyviolation", (it) =>
  window.__violations.push(`${it.effectiveDirective} ${it.blockedURI} ${it.sourceFile ?? ""}:${it.lineNumber}`));
"""

expect.set_options(timeout=PATIENCE_MS)


def brief(kind, error, trace):
    """Prints where in the scripts it went wrong, without the driver's own frames."""
    print(f"{kind.__name__}: {error}")
    here = str(Path(__file__).parent)
    for frame in traceback.extract_tb(trace):
        if frame.filename.startswith(here) and not frame.filename.endswith("driver.py"):
            print(f"  at {Path(frame.filename).name}:{frame.lineno}: {frame.line}")


sys.excepthook = brief


class Findings:
    """What is wrong, in the order in which it was found."""

    def __init__(self):
        self.texts = []

    def add(self, where, text):
        self.texts.append(f"{where}: {text}")

    def check(self, is_so, where, text):
        if not is_so:
            self.add(where, text)

    def end(self):
        """Prints the findings and ends the script."""
        for text in self.texts:
            print(text)
        sys.exit(1 if self.texts else 0)


class Watch:
    """Notes what a page does that no page may do."""

    def __init__(self, page, base, findings, where, allow_status=()):
        self.page, self.findings, self.where = page, findings, where
        self.origin = urlsplit(base).netloc
        self.allow_status = set(allow_status)
        page.add_init_script(NOTE_VIOLATIONS)
        page.on("console", self.on_console)
        page.on("pageerror", lambda error: self.note(f"uncaught {error}"))
        page.on("request", self.on_request)
        page.on("dialog", self.on_dialog)
        page.on("crash", lambda _: self.note("the page has crashed"))
        page.on("response", self.on_response)

    def note(self, text):
        self.findings.add(self.where, text)

    def on_console(self, message):
        # Statuses are looked at in `on_response`, which knows the expected ones.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.note(f"console error: {message.text}")

    def on_request(self, request):
        url = urlsplit(request.url)
        if url.scheme in ("http", "https", "ws", "wss") and url.netloc != self.origin:
            self.note(f"asks another host: {request.url}")

    def on_response(self, response):
        if 400 <= response.status and response.status not in self.allow_status:
            self.note(f"{response.request.method} {response.url} answers {response.status}")

    def on_dialog(self, dialog):
        self.note(f"opens a box: {dialog.type} {dialog.message}")
        dialog.dismiss()

    def violations(self):
        """Looks at what the content security policy has refused so far."""
        for text in self.page.evaluate("window.__violations ?? []"):
            self.note(f"against its content security policy: {text}")


class Server:
    """The server under test, and the sessions at it."""

    def __init__(self, browser):
        self.url = os.environ["EVENBEAT_URL"].rstrip("/")
        self.browser = browser
        self.sessions = {}

    def token(self, role):
        return os.environ[f"EVENBEAT_{role.upper()}_TOKEN"]

    def session(self, role):
        """The cookie of a session with this role, opened once with a token in the form of the login page."""
        if role not in self.sessions:
            context = self.browser.new_context(base_url=self.url)
            page = context.new_page()
            page.goto("/login")
            page.get_by_label("Token").fill(self.token(role))
            page.get_by_label("Token").press("Enter")
            page.wait_for_url(lambda url: urlsplit(url).path != "/login")
            self.sessions[role] = [it for it in context.cookies() if "session" in it["name"]]
            context.close()
        return self.sessions[role]

    def context(self, role="admin", viewport=DESKTOP, theme="light", zone="Europe/Berlin", is_first=False, **more):
        """A browser window of its own: `role=None` is a stranger, `is_first` one who was never here."""
        context = self.browser.new_context(
            base_url=self.url,
            viewport=viewport,
            color_scheme=theme,
            has_touch=viewport["width"] < 860,
            timezone_id=zone,
            locale="en-GB",
            **more,
        )
        context.set_default_timeout(PATIENCE_MS)
        if role is not None:
            context.add_cookies(self.session(role))
        if not is_first:
            # Pages load themselves again once, when they hear of the zone.
            context.add_cookies([{"name": "evenbeat_zone", "value": zone, "url": self.url}])
        return context

    def api(self, method, path, body=None):
        """Asks the API, beside the pages."""
        headers = {"Authorization": f"Bearer {self.token('admin')}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE_MS / 1000) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def last_run(self, job):
        """The id of a job's last run."""
        return self.api("GET", f"/jobs/{job}/runs?limit=1")["items"][0]["id"]

    def node(self):
        """The name of the node."""
        return self.api("GET", "/nodes")["items"][0]["node"]

    def audit(self):
        """What was changed so far, without logins: a list of actions and their subjects."""
        items = self.api("GET", "/audit?limit=200")["items"]
        return [(it["action"], it["subject"]) for it in items if "log" not in it["action"]]

    def audit_of(self, action):
        """How often something was done."""
        return sum(it == action for it, _ in self.audit())


@contextlib.contextmanager
def chromium():
    """A browser without a history."""
    with tempfile.TemporaryDirectory(prefix="evenbeat-browser-") as home, sync_playwright() as playwright:
        # The profile is Playwright's own and empty; what Chromium keeps elsewhere goes into a folder that is removed.
        env = {**os.environ, "HOME": home, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home}
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, env=env)
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def server():
    """A browser and the server of the environment."""
    with chromium() as browser:
        yield Server(browser)


def axe(page, findings, where):
    """Notes what axe-core finds serious or critical."""
    page.evaluate(AXE)
    result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    for violation in result["violations"]:
        if violation["impact"] in ("serious", "critical"):
            for node in violation["nodes"][:3]:
                target = " ".join(map(str, node["target"]))
                why = " ".join(it["message"] for kind in ("any", "all", "none") for it in node[kind])
                findings.add(where, f"axe {violation['id']} ({violation['impact']}): {target}: {why}")


def scroll_excess(page):
    """By how many pixels the page is wider than the window, and the elements that stick out furthest."""
    return page.evaluate(
        """() => {
          const root = document.scrollingElement, excess = root.scrollWidth - innerWidth;
          if (excess <= 0) return null;
          const wide = [...document.body.querySelectorAll("*")]
            .map((it) => [Math.round(it.getBoundingClientRect().right), it])
            .filter(([right]) => innerWidth < right)
            .sort((a, b) => b[0] - a[0]).slice(0, 3)
            .map(([right, it]) => `${it.tagName.toLowerCase()}.${it.getAttribute("class") ?? ""} to ${right}`);
          return `${excess} px wider than the window: ${wide.join(", ")}`;
        }"""
    )


# The pages of a fleet. `{JOB}` stands for the id of that job's last run.
PAGES = [
    "/",
    "/?tab=all",
    "/jobs/hostile",
    "/jobs/ops:paused",
    "/runs",
    "/runs/{hostile}",
    "/schedule",
    "/timeline",
    "/whatif",
    "/nodes",
    "/sites",
    "/alerts",
    "/audit",
    "/tokens",
    "/welcome",
]


def pages_of(here):
    """The addresses of all pages."""
    return [it.replace("{hostile}", here.last_run("hostile")) if "{" in it else it for it in PAGES]
