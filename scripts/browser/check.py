"""Uses the service with a browser, as a person and as web pages do:

    check.py CHROMIUM URL URL-BEHIND-A-BASE-PATH TOKEN ALLOWED-ORIGIN [FOLDER-FOR-PICTURES]
"""

import json
import sys

from playwright.sync_api import Browser, Page, sync_playwright

chromium, url, proxied, token, allowed, *pictures = sys.argv[1:]
# Chromium has no sandbox as root. It sends no requests to its maker, and a page of a fictitious host may send requests
# to this machine.
ARGUMENTS = [
    "--no-sandbox", "--no-first-run", "--no-proxy-server", "--disable-quic", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-features=LocalNetworkAccessChecks",
]
FETCH = """([target, request]) => fetch(target, request).then(
    (response) => [response.status, response.headers.get('location')], () => 'withheld')"""


def explore(browser: Browser, base: str, width: int, height: int) -> None:
    """Authorizes in the API explorer, creates a pet, lists it, and gets it."""
    page = browser.new_page(viewport={"width": width, "height": height})
    page.set_default_timeout(20_000)
    problems = []
    page.on("console", lambda message: problems.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: problems.append(f"not caught: {error}"))
    own = (f"{base}/", "data:")
    page.on("request", lambda request: request.url.startswith(own) or problems.append(f"request to {request.url}"))

    def check(step: str) -> None:
        if pictures:
            page.screenshot(path=f"{pictures[0]}/{width}-{step}.png", full_page=True)
        assert not problems, problems
        found = page.evaluate("document.documentElement.scrollWidth")
        assert found <= width, f"{step} is {found} px wide in a window of {width} px"

    def execute(operation: str, status: int, fill) -> object:
        """Fills in the form of an operation, sends it, and returns the body that the page shows."""
        block = page.locator(f'.opblock[id$="-{operation}"]')
        block.locator(".opblock-summary-control").click()
        fill(block)
        block.get_by_role("button", name="Execute").click()
        response = block.locator(".live-responses-table")
        response.wait_for()
        assert response.locator(".response-col_status").last.text_content() == str(status)
        check(operation)
        return json.loads(response.locator(".highlight-code code").first.text_content())

    page.goto(f"{base}/")
    assert page.url == f"{base}/docs", page.url
    page.get_by_role("button", name="Authorize").click()
    dialog = page.locator(".dialog-ux")
    dialog.get_by_role("textbox").fill(token)
    check("authorize")
    dialog.get_by_role("button", name="Apply credentials").click()
    dialog.get_by_role("button", name="Close").last.click()

    pet = {"name": f"Rex of {width} px 🐕", "categoryId": 7, "status": "pending"}
    created = execute("createPet", 201, lambda form: form.locator("textarea").fill(json.dumps(pet)))
    assert created | {"id": 0} == pet | {"id": 0}, created
    pets = execute("listPets", 200, lambda form: form.get_by_placeholder("limit").fill("100"))
    assert created in pets, pets
    found = execute("getPet", 200, lambda form: form.get_by_placeholder("petId").fill(str(created["id"])))
    assert found == created, found
    page.close()
    print(f"{width} px: authorized, created, listed, fetched")


def cross_origins(browser: Browser) -> None:
    """A page of the allowed origin creates a pet; another page cannot."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    create = {"method": "POST", "body": '{"name":"Rex","categoryId":1}'}
    shop, foreign = page_of(browser, allowed), page_of(browser, f"{allowed}.example")
    for page, key, refused, status in ((shop, "origins", [401, None], 201), (foreign, "foreign", "withheld", None)):
        target = f"{url}/v1/pets"
        assert page.evaluate(FETCH, [target, {}]) == refused
        answer = page.evaluate(FETCH, [target, create | {"headers": headers | {"Idempotency-Key": key}}])
        assert (answer[0] == status) if status else (answer == refused), answer
    print(f"{allowed}: created a pet; {allowed}.example: refused")


def page_of(browser: Browser, origin: str) -> Page:
    """An empty page of this origin, served without a request to its host."""
    page = browser.new_page()
    page.route(f"{origin}/", lambda route: route.fulfill(content_type="text/html", body="<!DOCTYPE html>"))
    page.goto(f"{origin}/")
    # While a route exists, Playwright itself responds to preflights.
    page.unroute(f"{origin}/")
    return page


with sync_playwright() as playwright, playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS) as browser:
    explore(browser, url, 1280, 900)
    explore(browser, proxied, 400, 800)
    cross_origins(browser)
