"""Theme and time zone are remembered, and right from the first byte."""

from driver import Findings, Watch, expect, server


def main():
    findings = Findings()
    with server() as here:
        theme(here, findings)
        zone(here, findings)
    findings.end()


def theme(here, findings):
    context = here.context(theme="light")
    page = context.new_page()
    Watch(page, here.url, findings, "theme")
    page.goto("/")
    root = page.locator("html")
    light = background(page)
    page.keyboard.press("t")
    expect(root).to_have_attribute("data-theme", "light")
    page.keyboard.press("t")
    expect(root).to_have_attribute("data-theme", "dark")
    dark = background(page)
    findings.check(light != dark, "theme", f"both have the background {light}")
    # The server knows: there is no flash of the other theme.
    text = context.request.get("/").text()
    findings.check('data-theme="dark"' in text.split("<body")[0], "theme", "is not in the first byte")
    page.goto("/runs")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    findings.check(background(page) == dark, "theme", "is another one on the next page")
    page.get_by_role("button", name="Theme").click()
    expect(page.locator("html")).not_to_have_attribute("data-theme", "dark")
    context.close()


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def zone(here, findings):
    context = here.context(zone="Asia/Tokyo", is_first=True)
    page = context.new_page()
    Watch(page, here.url, findings, "zone")
    page.goto("/")
    expect(page.locator("body")).to_have_attribute("data-zone", "Asia/Tokyo")
    # UTC is at hand: every time has the whole instant.
    page.goto("/runs")
    expect(page.locator("body")).to_have_attribute("data-zone", "Asia/Tokyo")
    times = page.locator("main time[datetime]")
    if times.count():
        instant = times.first.get_attribute("datetime")
        findings.check(instant.endswith("Z"), "zone", f"a time has the instant {instant}")
    context.close()
    # Without scripts nobody tells the zone, and the page says which one it uses.
    context = here.context(is_first=True, java_script_enabled=False)
    page = context.new_page()
    page.goto("/")
    expect(page.locator("body")).to_have_attribute("data-zone", "UTC")
    findings.check("UTC" in page.locator("body").inner_text(), "zone", "is not named without scripts")
    context.close()


main()
