"""A run from its button to its end: the row among the runs and the lines of its log come without a reload."""

import re

from driver import Findings, Watch, expect, server

JOB = "ops:by-hand"


def main():
    findings = Findings()
    with server() as here:
        context = here.context()
        runs = context.new_page()
        Watch(runs, here.url, findings, "/runs")
        runs.goto("/runs?o=all")
        rows = runs.locator(f"main [data-key]:has(a[href='/jobs/{JOB}'])")
        expect(rows).to_have_count(0)

        page = context.new_page()
        Watch(page, here.url, findings, JOB)
        page.goto(f"/jobs/{JOB}")
        page.get_by_role("button", name="Run now").or_(page.get_by_role("link", name="Run now")).first.click()
        page.locator("dialog[open]").get_by_role("button", name=re.compile("^Run")).click()
        page.wait_for_load_state()
        here_runs = lambda: here.api("GET", f"/jobs/{JOB}/runs?limit=1")["items"]
        expect(page.locator("main")).to_contain_text("unning")
        run = here_runs()[0]["id"]

        page.goto(f"/runs/{run}")
        page.evaluate("window.__same = true")
        log = page.locator("pre").first
        for n in range(1, 6):
            expect(log).to_contain_text(f"line {n}")
        expect(page.locator("h1")).to_contain_text(re.compile("succeeded|done|ended|good", re.I))
        findings.check(page.evaluate("window.__same === true"), "the run", "was loaded as a whole")
        findings.check(page.title().lower().count("running") == 0, "the run", f"has the title {page.title()!r}")

        expect(rows).to_have_count(1)
        expect(rows.first).to_contain_text(re.compile("succeeded|good|ok", re.I))
        context.close()
    findings.end()


main()
