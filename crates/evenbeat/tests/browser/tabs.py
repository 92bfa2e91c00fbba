"""Ten tabs at once over HTTP/1.1, where a browser has six connections: all load, and all hear of a change."""

from driver import Findings, Watch, expect, server

N_TABS = 10


def main():
    findings = Findings()
    with server() as here:
        context = here.context()
        tabs = []
        for n in range(N_TABS):
            page = context.new_page()
            Watch(page, here.url, findings, f"tab {n + 1}")
            page.goto("/jobs/sync:01", wait_until="load")
            tabs.append(page)
        for page in tabs:
            expect(page.locator(".live")).to_be_visible()
            # Goes when the page is loaded as a whole.
            page.evaluate("window.__same = true")
            expect(page.get_by_text("tabs are watching").first).not_to_be_visible()
        here.api("POST", "/jobs/sync:01/pause", {"reason": "tabs are watching"})
        for n, page in enumerate(tabs):
            expect(page.get_by_text("tabs are watching").first, f"tab {n + 1} hears of the pause").to_be_visible()
            findings.check(page.evaluate("window.__same === true"), f"tab {n + 1}", "was loaded as a whole")
        # The tab that holds the stream goes; another takes over.
        for page in tabs[:5]:
            page.close()
        here.api("POST", "/jobs/sync:01/resume")
        for n, page in enumerate(tabs[5:], 6):
            expect(page.get_by_text("tabs are watching").first, f"tab {n} hears of the end").not_to_be_visible()
        context.close()
    findings.end()


main()
