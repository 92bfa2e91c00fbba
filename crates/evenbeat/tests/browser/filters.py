"""The address holds what a list shows: it survives a reload, the way back, and is the same without scripts."""

from urllib.parse import parse_qs, urlsplit

from driver import Findings, Watch, expect, server


def query(page):
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def keys(page):
    return [it.get_attribute("data-key") for it in page.locator("main [data-rows] [data-key]").all()]


def main():
    findings = Findings()
    with server() as here:
        context = here.context()
        page = context.new_page()
        Watch(page, here.url, findings, "/")
        page.goto("/?tab=all")
        n_first = len(keys(page))
        findings.check(0 < n_first <= 50, "/", f"shows {n_first} rows")

        page.locator("#q").fill("sync:0")
        page.locator("#q").press("Enter")
        expect(page.locator("main [data-rows] [data-key]")).to_have_count(9)
        findings.check(query(page).get("q") == "sync:0", "search", f"is not in the address {page.url}")
        found = keys(page)
        page.reload()
        findings.check(keys(page) == found, "reload", f"shows {keys(page)} instead of {found}")
        expect(page.locator("#q")).to_have_value("sync:0")

        page.locator("[data-tab]").filter(has_text="Paused").first.click()
        page.wait_for_url("**tab=paused**")
        address = page.url
        page.reload()
        findings.check(page.url == address, "reload", f"leads to {page.url}")
        page.go_back()
        expect(page.locator("main [data-rows] [data-key]")).to_have_count(9)
        findings.check(keys(page) == found, "back", f"shows {keys(page)} instead of {found}")

        bare = here.context(java_script_enabled=False).new_page()
        bare.goto(page.url)
        findings.check(keys(bare) == found, "without scripts", f"shows {keys(bare)} instead of {found}")

        # Rows by keyboard.
        page.goto("/?tab=all&q=sync:0")
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("k")
        page.keyboard.press("j")
        expect(page.locator("[data-key][aria-selected=true]")).to_have_attribute("data-key", found[1])
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/jobs/{found[1]}")
        context.close()
    findings.end()


main()
