"""A crontab is pasted, shown with its spikes, and taken over; nothing happens before that."""

import re

from driver import Findings, Watch, expect, server

CRONTAB = """\
# m h dom mon dow command
0 * * * * /usr/local/bin/prices
0 * * * * /usr/local/bin/stock
0 * * * * /usr/local/bin/images
30 3 * * * /usr/local/bin/backup
@reboot /usr/local/bin/warm-up
"""


def main():
    findings = Findings()
    with server() as here:
        context = here.context()
        page = context.new_page()
        Watch(page, here.url, findings, "welcome")
        page.goto("/")
        page.get_by_role("main").get_by_role("link", name=re.compile("crontab|add jobs", re.I)).first.click()
        page.get_by_role("textbox", name="Crontab").fill(CRONTAB)
        page.get_by_role("button", name="Compare").click()
        expect(page.locator("main")).to_contain_text("@reboot")
        findings.check(here.api("GET", "/jobs")["items"] == [], "the proposal", "has added jobs")
        page.get_by_role("button", name=re.compile(r"^Take over 4 jobs$")).click()
        expect(page.locator(".toast").first).to_contain_text("Took over 4 jobs")
        items = here.api("GET", "/jobs")["items"]
        findings.check(len(items) == 4, "taken over", f"are {[it['key'] for it in items]}")
        page.goto("/?tab=all")
        expect(page.locator("main [data-rows] [data-key]")).to_have_count(4)
        context.close()
    findings.end()


main()
