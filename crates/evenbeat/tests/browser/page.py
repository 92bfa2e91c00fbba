"""Checks one page in every theme and width, and without scripts: page.py PATH [--stranger] [--status CODE] [--rows SELECTOR]"""

import argparse

from driver import DESKTOP, NARROW, PHONE, Findings, Watch, axe, scroll_excess, server


def main():
    args = argparse.ArgumentParser()
    args.add_argument("path")
    args.add_argument("--stranger", action="store_true", help="without a session")
    args.add_argument("--status", type=int, default=200)
    args.add_argument("--rows", help="a selector whose matches are the same with and without scripts")
    args = args.parse_args()
    findings = Findings()
    role = None if args.stranger else "admin"
    with server() as here:
        links = None
        for theme in ("light", "dark"):
            for viewport in (DESKTOP, PHONE, NARROW):
                where = f"{args.path} {theme} {viewport['width']}"
                context = here.context(role, viewport, theme)
                page = context.new_page()
                watch = Watch(page, here.url, findings, where, [args.status] if 400 <= args.status else [])
                answer = load(page, args.path)
                if answer.status != args.status:
                    findings.add(where, f"answers {answer.status}")
                    findings.end()
                if answer.url.split("?")[0] != f"{here.url}{args.path}".split("?")[0]:
                    findings.add(where, f"leads to {answer.url}")
                check_document(page, findings, where)
                axe(page, findings, where)
                watch.violations()
                excess = scroll_excess(page)
                findings.check(excess is None, where, excess)
                if args.rows and links is None:
                    links = rows(page, args.rows)
                    findings.check(links, where, f"shows nothing that matches {args.rows}")
                context.close()
        without_scripts(here, role, args, links, findings)
    findings.end()


def load(page, path):
    """Loads a page, and waits if it loads itself again until its answer is there."""
    answer = page.goto(path, wait_until="load")
    while "refresh" in answer.headers:
        with page.expect_navigation(wait_until="load") as again:
            pass
        answer = again.value
    return answer


def rows(page, selector):
    return [it.inner_text().split("\n")[0].strip() for it in page.locator(selector).all()]


def check_document(page, findings, where):
    """What every page has, for people who cannot see it and for those who have many tabs."""
    title = page.title()
    findings.check(title.endswith("Evenbeat") and 10 < len(title), where, f"has the title {title!r}")
    findings.check(page.locator("html[lang=en]").count() == 1, where, "has no language")
    findings.check(page.locator("main").count() == 1, where, "has no main part")
    n_headings = page.locator("h1").count()
    findings.check(n_headings == 1, where, f"has {n_headings} first headings")
    n_inline = page.locator("[style], script:not([src]):not([type='application/json']), style").count()
    findings.check(n_inline == 0, where, f"has {n_inline} inline scripts or styles")


def without_scripts(here, role, args, links, findings):
    where = f"{args.path} without scripts"
    context = here.context(role, java_script_enabled=False)
    page = context.new_page()
    Watch(page, here.url, findings, where, [args.status] if 400 <= args.status else [])
    load(page, args.path)
    text = page.locator("main").inner_text()
    findings.check(20 < len(text), where, f"shows almost nothing: {text!r}")
    if links is not None:
        found = rows(page, args.rows)
        findings.check(found == links, where, f"shows {found}, and with scripts {links}")
    context.close()


if __name__ == "__main__":
    main()
