"""A run from its button to its end: the row among the runs and the lines of its log come without a reload."""

import os
import re
import tempfile
from pathlib import Path

from driver import Findings, Watch, expect, server

JOB = f"watched-{os.getpid()}"

# Waits for a file before each line, so that the test and not the clock decides what is there when.
SCRIPT = """
for n in 1 2 3; do
  until [ -e "$0/$n" ]; do sleep 0.05; done
  printf 'line \\033[32m%s\\033[0m\\n' $n
done
"""


def main():
    findings = Findings()
    with server() as here, tempfile.TemporaryDirectory() as gate:
        here.api("PUT", f"/jobs/{JOB}", {"command": ["sh", "-c", SCRIPT, gate], "manual": True})
        context = here.context()
        running, ended = context.new_page(), context.new_page()
        rows = []
        for it, path in ((running, "/runs?o=running"), (ended, "/runs?o=all")):
            Watch(it, here.url, findings, path)
            it.goto(path)
            mark(it)
            rows.append(it.locator(f"main [data-key]:has(a[href='/jobs/{JOB}'])"))
            expect(rows[-1]).to_have_count(0)

        job = context.new_page()
        Watch(job, here.url, findings, f"/jobs/{JOB}")
        job.goto(f"/jobs/{JOB}")
        job.locator("main").get_by_role("button", name="Run now").click()
        job.locator("dialog[open]").get_by_role("button", name="Run now").click()
        expect(job.locator(".toast").first).to_be_visible()
        mark(job)
        expect(job.locator("main")).to_contain_text(re.compile("Running"))
        expect(rows[0]).to_contain_text("Running")

        page = context.new_page()
        path = f"/runs/{here.last_run(JOB)}"
        Watch(page, here.url, findings, path)
        page.goto(path)
        mark(page)
        expect(page.locator("h1")).to_contain_text("Running")
        log = page.get_by_role("log")
        for n in (1, 2, 3):
            Path(gate, str(n)).touch()
            expect(log).to_contain_text(f"line {n}")
        text = log.inner_text()
        findings.check("\x1b" not in text and "[32m" not in text, path, f"shows escape sequences: {text!r}")
        expect(page.locator("h1")).to_contain_text("Good")
        expect(page).to_have_title(re.compile("^(?!.*[Rr]unning)"))
        expect(rows[1]).to_contain_text("Good")
        expect(job.locator("main")).not_to_contain_text(re.compile("Running on|Running for|Running since"))
        for it, name in ((running, "/runs?o=running"), (ended, "/runs?o=all"), (job, f"/jobs/{JOB}"), (page, path)):
            findings.check(it.evaluate("window.__same === true"), name, "was loaded as a whole")
        context.close()
    findings.end()


def mark(page):
    """Leaves a mark that goes when the page is loaded again."""
    page.evaluate("window.__same = true")


main()
