"""Text of jobs, runs and people stays text on every page: no markup, no direction marks, no escape sequences."""

from driver import Findings, Watch, pages_of, server

MARK = "<script>alert(1)</script>"

# Raw control characters, and those that turn the direction of what follows.
LOOK = r"""() => {
  const found = [];
  const walk = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
  for (let it = walk.nextNode(); it; it = walk.nextNode())
    if (/[\u0000-\u0008\u000e-\u001f\u202a-\u202e\u2066-\u2069]/.test(it.data)) found.push(JSON.stringify(it.data.trim().slice(0, 120)));
  return {
    raw: found,
    images: document.querySelectorAll("img[src=x]").length,
    handlers: document.querySelectorAll("[onerror], [onclick], [onload]").length,
    text: document.documentElement.outerHTML.includes("alert(1)"),
  };
}"""


def main():
    findings = Findings()
    with server() as here:
        context = here.context()
        shown_on = []
        for path in pages_of(here):
            page = context.new_page()
            watch = Watch(page, here.url, findings, path)
            page.goto(path, wait_until="load")
            seen = page.evaluate(LOOK)
            findings.check(not seen["images"] and not seen["handlers"], path, "text has become markup")
            for text in seen["raw"][:3]:
                findings.add(path, f"has raw control or direction characters: {text}")
            if seen["text"]:
                shown_on.append(path)
            watch.violations()
            page.close()
        # Otherwise nothing was tested.
        for path in ("/jobs/hostile", "/jobs/ops:paused"):
            findings.check(path in shown_on, path, f"does not show the text; it is on {shown_on}")
        run = next(it for it in pages_of(here) if it.startswith("/runs/"))
        findings.check(run in shown_on, run, f"does not show the text of the log; it is on {shown_on}")
    findings.end()


main()
