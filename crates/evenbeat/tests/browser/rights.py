"""Who may only look sees no verbs, and cannot send what others may; no form can be sent from elsewhere, and no GET changes
anything: rights.py ROUTE…, with all routes that take forms."""

import re
import sys
from urllib.parse import urlsplit

from driver import Findings, Watch, pages_of, server

VERBS = re.compile(
    r"^(run now|stop|cancel run|pause|resume|rebalance|move \d|delete|edit|save|drain|mute|end now|create|revoke|take over|trigger)",
    re.I,
)
# Open and end sessions.
SESSIONS = ["/login", "/logout"]

# Only ask: nothing is stored but a plan that nobody has to carry out.
HARMLESS = ["/schedule/rebalance/preview", "/welcome", "/whatif/cancel"]

FORMS = """() => [...document.querySelectorAll("form")].filter((it) => it.method === "post")
  .map((it) => [new URL(it.action).pathname, [...new FormData(it)].filter(([name]) => name !== "form_token")])"""
VISIBLE = """() => [...document.querySelectorAll("main button, main a.btn, main input[type=submit], dialog button")]
  .map((it) => (it.textContent || it.value || "").trim())"""


def main():
    findings = Findings()
    routes = [it for it in sys.argv[1:] if it not in SESSIONS]
    with server() as here:
        admin, viewer = here.context("admin"), here.context("viewer")
        run, node, token_id = here.last_run("gov:long"), here.node(), here.token("viewer").split("_")[1]
        names = {"{key}": "hostile", "{name}": node}
        forms = {}
        for route in routes:
            path = route.replace("{id}", token_id if route.startswith("/tokens") else run)
            for name, value in names.items():
                path = path.replace(name, value)
            findings.check("{" not in path, route, "has a part that this test does not know")
            forms[path] = []

        token = None
        for path in pages_of(here):
            page = admin.new_page()
            page.goto(path, wait_until="load")
            for action, fields in page.evaluate(FORMS):
                if action not in SESSIONS:
                    forms[action] = fields
            page.close()

            page = viewer.new_page()
            where = f"{path} as viewer"
            Watch(page, here.url, findings, where, [403])
            answer = page.goto(path, wait_until="load")
            findings.check(answer.status in (200, 403), where, f"answers {answer.status}")
            for action, _ in page.evaluate(FORMS):
                findings.check(action in SESSIONS + HARMLESS, where, f"has a form for {action}")
            for text in page.evaluate(VISIBLE):
                findings.check(not VERBS.match(text), where, f"shows {text!r}")
            token = token or page.evaluate("document.querySelector('[name=form_token]')?.value")
            page.close()
        findings.check(token, "pages", "have no form token")

        before = here.audit()
        origin = {"Origin": here.url, "Sec-Fetch-Site": "same-origin"}
        for action, fields in forms.items():
            sent = dict(fields)
            if action not in HARMLESS:
                form = {**sent, "form_token": token or ""}
                reply = viewer.request.post(action, form=form, headers=origin, max_redirects=0)
                findings.check(reply.status == 403, action, f"answers a viewer with {reply.status}")
            for wrong in ({}, {"form_token": ""}, {"form_token": "0" * 64}, {"form_token": token or ""}):
                reply = admin.request.post(action, form={**sent, **wrong}, headers=origin, max_redirects=0)
                findings.check(reply.status == 403, action, f"answers {reply.status} to the form token {wrong}")
            reply = admin.request.get(action, max_redirects=0)
            findings.check(reply.status in (200, 303, 404, 405), action, f"answers {reply.status} to a GET")
        from_elsewhere(here, forms, findings)
        after = here.audit()
        findings.check(after == before, "forms", f"have changed something: {after[: len(after) - len(before)]}")
        print(f"{len(forms)} forms: {', '.join(sorted(forms))}")
    findings.end()


def from_elsewhere(here, forms, findings):
    """Another site sends a form to this one, in the browser of someone who is logged in."""
    context = here.context("admin")
    evil = "http://evil.example"
    context.route(f"{evil}/**", lambda route: route.fulfill(body="<h1>evil</h1>", content_type="text/html"))
    for action, fields in forms.items():
        page = context.new_page()
        page.goto(f"{evil}/")
        page.evaluate(
            """([url, fields]) => {
              const form = document.createElement("form"); form.method = "post"; form.action = url;
              for (const [name, value] of fields) {
                const it = document.createElement("input"); it.name = name; it.value = value; form.append(it);
              }
              document.body.append(form);
            }""",
            [f"{here.url}{action}", fields],
        )
        with page.expect_response(lambda it: urlsplit(it.url).path == action) as answer:
            page.evaluate("document.forms[0].submit()")
        findings.check(answer.value.status == 403, action, f"answers {answer.value.status} to another site")
        page.close()


main()
