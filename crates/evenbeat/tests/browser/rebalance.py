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
        before = here.api("GET", "/distribution")["score"]
        preview(page, how)
        dialog = page.locator("dialog[open]")
        heading = dialog.get_by_role("heading", level=2).first
        expect(heading).to_contain_text(re.compile(r"moves \d+ of \d+ jobs"))
        planned = int(re.search(r"moves (\d+)", heading.inner_text()).group(1))
        findings.check(0 < planned, "preview", "moves nothing")
        findings.check(here.audit_of("rebalance") == 0, "preview", "has changed something")
        # Compare: what moves, and what stays with its reason.
        expect(dialog.locator("table tbody tr").first).to_be_visible()
        if how == "stale":
            here.api("PUT", "/jobs/another", {"command": ["true"], "every": "1h"})
        confirm = dialog.get_by_role("button", name=re.compile(rf"^Move {planned} jobs?$"))
        expect(confirm).to_be_enabled()
        if how == "keyboard":
            tab_to(page, confirm)
            page.keyboard.press("Enter")
        else:
            confirm.click()
        if how == "stale":
            expect(page.locator("dialog[open], main").first).to_contain_text(re.compile("preview|plan", re.I))
            expect(page.locator(".banner:visible").first).to_contain_text(re.compile("changed|new preview|recomputed", re.I))
            findings.check(here.audit_of("rebalance") == 0, "stale plan", "was applied")
            page.locator("dialog[open]").get_by_role("button", name=re.compile(r"^Move \d+ jobs?$")).click()
        toast = page.locator(".toast").first
        expect(toast).to_contain_text(re.compile(r"[Mm]oved \d+ jobs?"))
        moved = int(re.search(r"oved (\d+)", toast.inner_text()).group(1))
        findings.check(moved == planned or how == "stale", "result", f"{moved} moved, {planned} were planned")
        after = here.api("GET", "/distribution")["score"]
        findings.check(before < after, "result", f"the score goes from {before} to {after}")
        findings.check(here.audit_of("rebalance") == 1, "result", "is not in the audit once")
        context.close()
    findings.end()


def preview(page, how):
    button = page.locator("main").get_by_role("button", name=re.compile("^(Preview|Rebalance)")).or_(
        page.locator("main").get_by_role("link", name=re.compile("^(Preview|Rebalance)"))
    ).first
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
