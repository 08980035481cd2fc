"""The page in a real browser: nothing is loaded, nothing is logged, nothing sticks out."""

import base64
import json

import pytest

from tests.browser import headless


@pytest.fixture(scope="module")
def browser():
    with headless() as driver:
        yield driver


def opened(browser, run, page, width=1000, scheme="light"):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get((run / "report.html").as_uri())
    return browser


def test_it_opens_without_a_word_and_without_a_request(browser, run, page):
    opened(browser, run, page)
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert [url.partition("#")[0] for url in asked] == [(run / "report.html").as_uri()]
    assert browser.title.endswith("a report")


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_nothing_sticks_out(browser, run, page, width):
    opened(browser, run, page, width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    wide, narrow = (
        browser.execute_script(f"return getComputedStyle(document.querySelector('.{name}')).display")
        for name in ("wide", "narrow")
    )
    assert (wide == "none") == (width < 640) == (narrow != "none")


CONTRASTS = """
const shade = c => { const v = c.match(/[\\d.]+/g).map(Number); return v.length > 3 && v[3] === 0 ? null : v; };
const part = x => x <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4;
const light = v => { const [r, g, b] = v.map(x => part(x / 255));
                     return .2126 * r + .7152 * g + .0722 * b; };
const behind = e => { for (; e; e = e.parentElement) {
    const c = getComputedStyle(e).backgroundColor; if (c.startsWith('rgb')) { const v = shade(c); if (v) return v; } }
  return [255, 255, 255]; };
const low = [];
for (const e of document.querySelectorAll('body *')) {
  const words = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
  if (!words || !e.getClientRects().length) continue;
  const style = getComputedStyle(e), own = e.namespaceURI.endsWith('svg') ? style.fill : style.color;
  const [a, b] = [light(shade(own)), light(behind(e))].sort((x, y) => y - x);
  const name = e.className.baseVal ?? e.className;
  if ((a + .05) / (b + .05) < 4.5) low.push([e.tagName, name, e.textContent.slice(0, 20)]);
}
return low;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_schemes(browser, run, page, scheme):
    opened(browser, run, page, scheme=scheme)
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (sum(int(v) for v in background[4:-1].split(",")) > 380) == (scheme == "light")
    assert browser.execute_script(CONTRASTS) == []


def test_it_prints_light_on_paper(browser, run, page):
    opened(browser, run, page, scheme="dark")
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    assert base64.b64decode(printed["data"]).startswith(b"%PDF-")
    media = {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    ink = browser.execute_script("return getComputedStyle(document.body).color")
    assert sum(int(v) for v in ink[4:-1].split(",")) < 200
