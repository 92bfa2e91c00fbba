"""Everything can be reached without a mouse: the skip link, `g`, `?`, the palette and the search."""

from urllib.parse import urlsplit

from driver import Findings, Watch, expect, server


def main():
    findings = Findings()
    with server() as here:
        context = here.context()
        page = context.new_page()
        Watch(page, here.url, findings, "keyboard")
        page.goto("/")

        page.keyboard.press("Tab")
        focused = page.evaluate("document.activeElement.textContent.trim()")
        findings.check(focused == "Skip to content", "tab", f"goes to {focused!r} first")
        findings.check(
            page.evaluate("getComputedStyle(document.activeElement).outlineStyle !== 'none'"), "focus", "cannot be seen"
        )

        for keys, path in (("gs", "/schedule"), ("gt", "/timeline"), ("gr", "/runs"), ("gn", "/nodes"), ("ga", "/alerts"), ("gw", "/whatif"), ("gf", "/")):
            for key in keys:
                page.keyboard.press(key)
            page.wait_for_url(lambda url, path=path: urlsplit(url).path == path, wait_until="load")

        help_ = page.locator("dialog#keys")
        page.keyboard.press("?")
        expect(help_).to_be_visible()
        page.keyboard.press("Escape")
        expect(help_).not_to_be_visible()

        palette = page.locator("dialog#pal")
        page.keyboard.press("Control+k")
        expect(palette).to_be_visible()
        page.keyboard.press("Control+k")
        expect(palette).not_to_be_visible()
        page.keyboard.press("Control+k")
        expect(palette).to_be_visible()
        page.keyboard.type("schedule")
        expect(palette.locator("[aria-selected=true]")).to_contain_text("Schedule")
        page.keyboard.press("Enter")
        page.wait_for_url("**/schedule*", wait_until="load")

        # A job by a part of its name.
        page.keyboard.press("Control+k")
        expect(palette).to_be_visible()
        page.keyboard.type("op:pric")
        expect(palette.locator("#pal-jobs .po")).to_have_count(1)
        page.keyboard.press("Enter")
        page.wait_for_url("**/jobs/shop:prices")

        # Single keys are off while typing, and can be switched off.
        page.goto("/")
        page.keyboard.press("/")
        focused = page.evaluate("document.activeElement.tagName")
        findings.check(focused == "INPUT", "/", f"goes to {focused}")
        page.keyboard.type("gs?")
        findings.check(urlsplit(page.url).path == "/", "typing", "leads elsewhere")
        expect(help_).not_to_be_visible()
        page.keyboard.press("Escape")
        context.close()
    findings.end()


main()
