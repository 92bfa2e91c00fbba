"""Preview, compare, confirm, result: rebalance.py mouse|keyboard|stale"""

import re
import sys

from driver import Findings, Watch, expect, server


def main():
    findings = Findings()
    how = sys.argv[1]
    with server() as here:
        context = here.context()
        page = context.new_page()
        # The address of the preview is asked for again after a plan was refused.
        Watch(page, here.url, findings, how, [409])
        page.goto("/schedule")
        before = here.api("GET", "/status")["distribution_score"]
        preview(page, how)
        dialog = page.locator("dialog[open]")
        heading = dialog.get_by_role("heading", level=2).first
        expect(heading).to_contain_text(re.compile(r"moves \d+ of \d+ jobs"))
        planned = int(re.search(r"moves (\d+)", heading.inner_text()).group(1))
        findings.check(0 < planned, "preview", "moves nothing")
        findings.check(here.audit_of("rebalance") == 0, "preview", "has changed something")
        # Compare: what moves, and what stays with its reason.
        expect(dialog.get_by_role("tabpanel").locator("tbody tr").first).to_be_visible()
        stays = dialog.get_by_role("tab", name="Stays")
        if how == "keyboard":
            tab_to(page, dialog.get_by_role("tab", name="Moves"))
            page.keyboard.press("ArrowRight")
        else:
            stays.click()
        expect(stays).to_have_attribute("aria-selected", "true")
        expect(dialog.get_by_role("tabpanel", name="Stays")).to_be_visible()
        if how == "stale":
            here.api("PUT", "/jobs/another", {"command": ["true"], "every": "1h"})
            seen = page.url
        confirm = dialog.get_by_role("button", name=re.compile(rf"^Move {planned} jobs?$"))
        expect(confirm).to_be_enabled()
        height = confirm.bounding_box()["height"]
        findings.check(24 <= height, "confirm", f"is a button of {height} px")
        if how == "keyboard":
            tab_to(page, confirm)
            page.keyboard.press("Enter")
        else:
            confirm.click()
        if how == "stale":
            page.wait_for_url(lambda url: url != seen)
            expect(dialog.locator(".banner")).to_contain_text(re.compile("changed|new preview", re.I))
            findings.check(here.audit_of("rebalance") == 0, "stale plan", "was applied")
            dialog.get_by_role("button", name=re.compile(r"^Move \d+ jobs?$")).click()
        toast = page.locator(".toast").first
        expect(toast).to_contain_text(re.compile(r"[Mm]oved \d+ jobs?"))
        moved = int(re.search(r"oved (\d+)", toast.inner_text()).group(1))
        findings.check(moved == planned or how == "stale", "result", f"{moved} moved, {planned} were planned")
        after = here.api("GET", "/status")["distribution_score"]
        findings.check(before < after, "result", f"the score goes from {before} to {after}")
        n_audited = here.audit_of("rebalance")
        findings.check(n_audited == moved, "result", f"{moved} moved, {n_audited} are in the audit")
        context.close()
    findings.end()


def preview(page, how):
    button = page.locator("main").get_by_role("button", name="Preview rebalance")
    if how == "keyboard":
        tab_to(page, button)
        page.keyboard.press("Enter")
    else:
        button.click()


def tab_to(page, target):
    """Presses Tab until something has the focus. A page with a trap never gets there."""
    for _ in range(400):
        if target.evaluate("(it) => it === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{target} cannot be reached with Tab")


main()
