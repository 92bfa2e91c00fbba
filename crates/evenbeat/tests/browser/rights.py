"""Who may only look sees no verbs, and cannot send what others may; nobody's form can be sent from elsewhere, or by GET."""

import re
from urllib.parse import urlsplit

from driver import Findings, Watch, pages_of, server

VERBS = re.compile(
    r"^(run now|stop|cancel run|pause|resume|rebalance|move \d|delete|edit|save|drain|mute|end now|create|revoke|take over|trigger)",
    re.I,
)
FORMS = """() => [...document.querySelectorAll("form")].filter((it) => it.method === "post")
  .map((it) => [new URL(it.action).pathname, [...new FormData(it)].filter(([name]) => name !== "form_token")])"""
VISIBLE = """() => [...document.querySelectorAll("main button, main a.btn, main input[type=submit], dialog button")]
  .map((it) => (it.textContent || it.value).trim())"""


def main():
    findings = Findings()
    with server() as here:
        admin, viewer = here.context("admin"), here.context("viewer")
        forms = {}
        token = None
        for path in pages_of(here):
            page = admin.new_page()
            page.goto(path, wait_until="load")
            for action, fields in page.evaluate(FORMS):
                if action not in ("/logout", "/login"):
                    forms.setdefault(action, fields)
            page.close()

            page = viewer.new_page()
            Watch(page, here.url, findings, f"{path} as viewer", [403])
            answer = page.goto(path, wait_until="load")
            findings.check(answer.status in (200, 403), f"{path} as viewer", f"answers {answer.status}")
            for action, _ in page.evaluate(FORMS):
                findings.check(action in ("/logout", "/login"), f"{path} as viewer", f"has a form for {action}")
            for text in page.evaluate(VISIBLE):
                findings.check(not VERBS.match(text), f"{path} as viewer", f"shows {text!r}")
            token = token or page.evaluate("document.querySelector('[name=form_token]')?.value")
            page.close()
        findings.check(forms, "pages", "have no forms at all")
        findings.check(token, "pages", "have no form token")

        before = here.audit()
        origin = {"Origin": here.url, "Sec-Fetch-Site": "same-origin"}
        for action, fields in forms.items():
            sent = dict(fields)
            reply = viewer.request.post(action, form={**sent, "form_token": token or ""}, headers=origin, max_redirects=0)
            findings.check(reply.status == 403, action, f"answers a viewer with {reply.status}")
            for wrong in ({}, {"form_token": ""}, {"form_token": "0" * 64}, {"form_token": token or ""}):
                reply = admin.request.post(action, form={**sent, **wrong}, headers=origin, max_redirects=0)
                findings.check(reply.status == 403, action, f"answers {reply.status} to the form token {wrong}")
            reply = admin.request.get(action, max_redirects=0)
            findings.check(reply.status in (200, 303, 404, 405), action, f"answers {reply.status} to a GET")
        from_elsewhere(here, forms, findings)
        after = here.audit()
        findings.check(after == before, "forms", f"have changed something: {after[: len(after) - len(before)]}")
        print_covered(forms)
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


def print_covered(forms):
    print(f"{len(forms)} forms: {', '.join(sorted(forms))}")


main()
