"""Pictures of all pages, in both themes, on a desk and on a phone: shoot.py LINK OUT"""

import re
import sys
from pathlib import Path
from urllib.parse import urlsplit

from driver import DESKTOP, PATIENCE_MS, PHONE, Findings, Watch, chromium


def main():
    link, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    base = "{0.scheme}://{0.netloc}".format(urlsplit(link))
    findings = Findings()
    with chromium() as browser:
        context = browser.new_context()
        page = context.new_page()
        page.goto(link)
        session = [it for it in context.cookies() if "session" in it["name"]]
        pages = pages_of(page, base)
        context.close()
        for size, viewport in (("desktop", DESKTOP), ("phone", PHONE)):
            for theme in ("light", "dark"):
                context = browser.new_context(
                    base_url=base, viewport=viewport, color_scheme=theme, timezone_id="UTC", locale="en-GB", device_scale_factor=1
                )
                context.set_default_timeout(PATIENCE_MS)
                context.add_cookies([*session, {"name": "evenbeat_zone", "value": "UTC", "url": base}])
                for name, path in pages:
                    page = context.new_page()
                    Watch(page, base, findings, f"{name} {size} {theme}")
                    page.goto(path, wait_until="load")
                    if name == "rebalance":
                        page.get_by_role("main").get_by_role("button", name="Preview rebalance").first.click()
                        page.locator("dialog[open]").wait_for()
                    if name == "palette":
                        page.keyboard.press("Control+k")
                        page.keyboard.type("atlas")
                        page.locator("dialog[open] #pal-jobs .po").first.wait_for()
                    file = out / f"{name}-{size}-{theme}.png"
                    page.screenshot(animations="disabled", path=file)
                    print(file)
                    page.close()
                stranger = browser.new_context(base_url=base, viewport=viewport, color_scheme=theme)
                page = stranger.new_page()
                page.goto("/login")
                page.screenshot(animations="disabled", path=out / f"login-{size}-{theme}.png")
                print(out / f"login-{size}-{theme}.png")
                stranger.close()
                context.close()
    findings.end()


def pages_of(page, base):
    """The pages of the demo, with a run that goes on and one that was ended by its limit."""
    return [
        ("fleet", "/"),
        ("fleet-all", "/?tab=all"),
        ("job", "/jobs/gov:tenders"),
        ("job-waiting", "/jobs/gov:vessel-register"),
        ("run-live", run_of(page, base, "shop:full-recrawl")),
        ("run-killed", run_of(page, base, "shop:hanging-export")),
        ("runs", "/runs"),
        ("schedule", "/schedule"),
        ("rebalance", "/schedule"),
        ("timeline", "/timeline"),
        ("whatif", "/whatif?n=60&every=5m&take=30s&pool=crawl"),
        ("nodes", "/nodes"),
        ("sites", "/sites"),
        ("alerts", "/alerts"),
        ("audit", "/audit"),
        ("tokens", "/tokens"),
        ("welcome", "/welcome"),
        ("palette", "/"),
        ("not-found", "/jobs/no-such-job"),
    ]


def run_of(page, base, job):
    """The page of a job's last run, as the job's page links to it."""
    page.goto(f"{base}/jobs/{job}")
    links = [it.get_attribute("href") for it in page.locator("a[href^='/runs/']").all()]
    return next((it for it in links if re.match(r"^/runs/[0-9a-f-]{36}$", it)), "/runs")


main()
