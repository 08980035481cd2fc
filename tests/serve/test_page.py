"""The page in a real browser, before a real service: what it shows is what the service says."""

import json
import shutil
from decimal import ROUND_HALF_UP, Decimal
from urllib.parse import quote, urlencode

import numpy as np
import pytest

from relae import RDLAE, Interactions, store
from relae.baselines import Popularity
from relae.datasets import online_retail
from relae.evaluation.groups import head_items
from tests.browser import headless
from tests.serve.running import serving, serving_another

PATIENCE = 20  # seconds; nothing waits for so long unless it fails

MARKUP = '<img src="x" onerror="document.title = \'broken into\'"><b>Bold</b> & "quoted"'
SLASHED = "a/b c?#%&+ü"
TASTE = ["22784", "22224", "71477", "84879"]  # lanterns and birds


# --- a service and a browser -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    """Real data with real titles, and a few that no shop would have."""
    real = online_retail()
    often = np.flatnonzero(np.bincount(real.matrix.indices, minlength=real.n_items) >= 60)
    items, titles = list(real.items.values[often]), list(real.titles[often])
    titles[items.index("22224")] = MARKUP
    titles[items.index("84879")] = None
    items[items.index("71477")] = SLASHED
    return Interactions(real.matrix[:2000][:, often], real.users.values[:2000], items, titles)


@pytest.fixture(scope="module")
def model(data):
    return RDLAE(l2=50, dropout=0.3, xi=0.3).fit(data)


@pytest.fixture(scope="module")
def folder(model, data, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "model"
    store.save(model, path, histories=data, title="A shop <of> things")
    return path


@pytest.fixture(scope="module")
def site(folder):
    with serving(folder, log=False) as client:
        yield client


@pytest.fixture(scope="module")
def timed(data, tmp_path_factory):
    """A service whose model was fitted with times."""
    path = tmp_path_factory.mktemp("timed") / "model"
    times = 10**9 + np.random.default_rng(3).integers(0, 90 * 86_400, data.matrix.nnz)
    model = RDLAE(l2=50, dropout=0.3, xi=0.3, half_life=60, fading=0.25, freshness=0.1, fresh_days=5)
    store.save(model.fit(data.replace(times=times)), path)
    with serving(path, log=False) as client:
        yield client


@pytest.fixture(scope="module")
def chromium():
    with headless() as driver:
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
        yield driver


# What is asked for, how much of it at a time; and answers can be held back.
WATCH = """
Object.assign(window, {asked: [], flying: 0, most: 0, delays: [], lastAsked: 0});
const plain = window.fetch;
window.fetch = async (url, options) => {
  const list = url.endsWith('v1/recommend');
  window.lastAsked = performance.now();
  if (list) {
    window.asked.push(JSON.parse(options.body));
    window.flying += 1;
    window.most = Math.max(window.most, window.flying);
  }
  try {
    const answer = await plain(url, options);
    if (list) await new Promise(done => setTimeout(done, window.delays.shift() ?? 0));
    return answer;
  } finally { window.lastAsked = performance.now(); if (list) window.flying -= 1; }
};
"""


class Page:
    """What a person does with the page, and sees of it."""

    def __init__(self, driver, site):
        self.driver, self.site = driver, site
        self.complaints = []  # parts of console messages that are due

    def open(self, link="", site=None):
        self.driver.get("about:blank")  # a change after "#" alone would not load the page again
        self.driver.get(str((site or self.site).base_url.join("/")) + link)
        return self

    def view(self, width=1200, height=900, scheme="light", motion="no-preference"):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": motion}
        media = [{"name": name, "value": value} for name, value in features.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
        return self

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def one(self, selector):
        return self.driver.find_element("css selector", selector)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def texts(self, selector):
        found = self.run("return [...document.querySelectorAll(arguments[0])].map(e => e.innerText)", selector)
        return [text.strip() for text in found]

    def until(self, condition, what):
        """Wait for something to be true; `what` is said if it never is."""
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.ui import WebDriverWait

        ignored = [StaleElementReferenceException]
        return WebDriverWait(self.driver, PATIENCE, 0.02, ignored).until(lambda _: condition(), what)

    def press(self, *keys):
        """Press keys where the focus is."""
        from selenium.webdriver.common.keys import Keys

        for key in keys:
            self.driver.switch_to.active_element.send_keys(getattr(Keys, key, key))

    @property
    def ranked(self):
        return self.run("return [...document.querySelectorAll('#rows > li')].map(row => row.dataset.item)")

    @property
    def chips(self):
        return self.texts("#chips .chip span")

    @property
    def focused(self):
        return self.run("const e = document.activeElement; return e.id || e.dataset.control || e.textContent.trim()")

    def until_ranked(self, wanted):
        self.until(lambda: self.ranked == wanted, f"the list never became {wanted}")

    def until_taste(self, *names):
        self.until(lambda: self.chips == list(names), f"the taste never became {names}")

    def settle(self):
        """Wait until nothing is asked for, and nothing moves, any more."""
        quiet = "return flying === 0 && performance.now() - lastAsked > 300 && document.getAnimations().length === 0"
        self.until(lambda: self.run(quiet), "the page never came to rest")


@pytest.fixture
def page(chromium, site):
    """The page, watched: no word on the console, and no request to another host."""
    chromium.get("about:blank")
    chromium.get_log("browser")
    chromium.get_log("performance")
    found = Page(chromium, site).view()
    yield found
    words = [entry["message"] for entry in chromium.get_log("browser")]
    assert [word for word in words if not any(part in word for part in found.complaints)] == []
    events = [json.loads(entry["message"])["message"] for entry in chromium.get_log("performance")]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert [url for url in asked if not url.startswith(("http://127.0.0.1:", "about:", "data:,"))] == []


def ask(site, path, body=None):
    answer = site.get(path) if body is None else site.post(path, json=body)
    return answer.raise_for_status().json()


def ids(answer):
    return [str(item["item"]) for item in answer["items"]]


def called(item):
    """How the page must call an item, with spaces as a browser shows them."""
    return " ".join((item["title"] or str(item["item"])).split())


def recommended(site, taste, **wish):
    return ids(ask(site, "v1/recommend", {"history": taste, **wish}))


def link(**state):
    """The address of a state."""
    pairs = [(name, value) for name, values in state.items() for value in np.atleast_1d(values).tolist()]
    return "#" + urlencode(pairs, quote_via=quote)


# --- the beginning -----------------------------------------------------------------------------------------------


def test_it_begins_with_what_is_popular(page, site):
    page.open()
    page.until(lambda: page.all(".starter"), "nothing to start from")
    popular = ask(site, "v1/items?limit=12")["items"]
    assert page.texts(".starter-name") == [called(item) for item in popular]
    assert not page.one("#board").is_displayed()
    assert page.driver.title == "A shop <of> things · relae"
    page.all(".starter")[1].click()
    page.until_ranked(recommended(site, [popular[1]["item"]]))
    assert not page.one("#start").is_displayed()
    assert page.focused == "results-heading"


def test_a_surprise_is_a_few_well_known_items(page, site):
    page.open()
    page.until(lambda: page.all(".starter"), "nothing to start from")
    page.one("#surprise").click()
    page.until(lambda: len(page.ranked) == 10, "no recommendations")
    taste = page.run("return new URLSearchParams(location.hash.slice(1)).getAll('taste')")
    assert len(set(taste)) == 3
    assert set(taste) <= set(ids(ask(site, "v1/items?limit=48")))
    page.until_ranked(recommended(site, taste))


def test_the_footer_says_which_model_this_is(page, model, data):
    page.open()
    page.until(lambda: page.one("#footer").text, "no footer")
    words = page.one("#footer").text
    for part in ("RDLAE, l2 50, dropout 0.3, ξ 0.3", f"{data.n_users:,} users × {data.n_items:,} items", "residual"):
        assert part in words
    assert page.one("#footer a").get_attribute("href") == str(page.site.base_url.join("/openapi.json"))


# --- the taste ---------------------------------------------------------------------------------------------------


def test_search_is_a_combobox_for_the_keyboard(page, site):
    page.open()
    field = page.one("#search")
    field.send_keys("bird")
    page.until(lambda: page.all("#popup:not([hidden]) [role=option]"), "nothing found")
    found = ask(site, "v1/items?q=bird&limit=10")
    names = [called(item) for item in found["items"]]
    assert page.texts("#found .option-name") == names
    assert str(found["total"]) in page.one("#found-note").text
    assert field.get_attribute("aria-expanded") == "true"

    def active():
        pointed = field.get_attribute("aria-activedescendant")
        [selected] = page.all("#found [aria-selected=true]")
        assert selected.get_attribute("id") == pointed
        return page.texts(".option-name").index(selected.find_element("class name", "option-name").text)

    assert active() == 0
    page.press("ARROW_DOWN", "ARROW_DOWN")
    assert active() == 2
    page.press("ARROW_UP", "ARROW_UP", "ARROW_UP")
    assert active() == len(names) - 1  # round and round
    page.press("ESCAPE")
    assert field.get_attribute("aria-expanded") == "false"
    assert field.get_attribute("value") == "bird"
    page.press("ESCAPE")
    assert field.get_attribute("value") == ""
    field.send_keys("bird")
    page.until(lambda: page.all("#popup:not([hidden]) [role=option]"), "nothing found")
    page.press("ARROW_DOWN", "ENTER")
    page.until_taste(names[1])
    page.until_ranked(recommended(site, [found["items"][1]["item"]]))
    assert page.focused == "search"
    assert field.get_attribute("value") == ""


def test_enter_takes_the_best_even_before_the_list_is_there(page, site):
    page.open()
    page.until(lambda: page.all(".starter"), "nothing to start from")
    page.one("#search").send_keys("lunch bag", "\ue007")
    [first] = ask(site, "v1/items?q=lunch+bag&limit=1")["items"]
    page.until_taste(first["title"])


def test_nothing_found_is_said(page):
    page.open()
    page.one("#search").send_keys("zzzz qqqq")
    page.until(lambda: "Nothing found" in page.one("#popup").text, "no word")
    assert page.all("#found [role=option]") == []


def test_items_can_be_taken_out_again(page, site):
    page.open(link(taste=["22423", "22784", "20725"]))
    page.until_ranked(recommended(site, ["22423", "22784", "20725"]))
    before = page.chips
    page.all("#chips button")[1].click()
    page.until_taste(before[0], before[2])
    page.until_ranked(recommended(site, ["22423", "20725"]))
    assert page.run("return document.activeElement.getAttribute('aria-label')") == f"Remove {before[2]}"
    page.one("#clear").click()
    page.until(lambda: page.one("#start").is_displayed(), "not at the beginning")
    assert page.ranked == []


def test_rows_are_liked_and_denied(page, site):
    page.open(link(taste=["22423"]))
    first = recommended(site, ["22423"])
    page.until_ranked(first)
    page.all("[data-control=like]")[2].click()
    page.until_ranked(recommended(site, ["22423", first[2]]))
    page.settle()
    assert page.run("return document.activeElement.dataset.control") == "like"  # a row is still in focus
    second = page.ranked
    page.all("[data-control=deny]")[0].click()
    page.until_ranked(recommended(site, ["22423", first[2]], deny=[second[0]]))
    assert second[0] not in page.ranked
    page.one("#denied-chips button").click()
    page.until_ranked(second)


def test_a_user_can_be_looked_at(page, site, data):
    user = data.users.values[7].item()
    page.open()
    page.until(lambda: page.one("#user-form").is_displayed(), "no field for users")
    page.one("#user").send_keys(str(user), "\ue007")
    page.until_ranked(ids(ask(site, "v1/recommend", {"user": user})))
    page.until_taste(f"User {user} · {len(data.history(user))} items")
    page.complaints = ["404"]
    first = page.ranked[0]
    page.one("[data-control=like]").click()  # a taste of its own from here on
    page.until_ranked(recommended(site, [first]))
    assert f"user {user}" in page.one("#notices").text
    page.driver.back()
    page.until_taste(f"User {user} · {len(data.history(user))} items")
    page.one("#user").send_keys("nobody", "\ue007")
    page.until(lambda: "nobody" in page.one("#user-error").text, "an unknown user without a word")
    assert page.one("#user").get_attribute("value") == "nobody"
    assert page.chips  # and what was there stays
    page.driver.get_log("browser")


# --- the list ----------------------------------------------------------------------------------------------------


def test_rows_show_what_the_service_says(page, site):
    page.open(link(taste=TASTE[:2], k=20, xi=0.2))
    answer = ask(site, "v1/recommend", {"history": TASTE[:2], "k": 20, "xi": 0.2, "explain": True})
    page.until_ranked(ids(answer))
    assert page.texts(".row .rank") == [str(rank) for rank in range(1, 21)]
    assert page.texts(".row .title") == [called(item) for item in answer["items"]]
    assert page.texts(".row .score") == [f"{item['score']:.3f}" for item in answer["items"]]
    groups = {"head": "popular", "tail": "long tail"}
    assert page.texts(".row .group") == [groups[item["group"]] for item in answer["items"]]
    assert {"head", "tail"} == {item["group"] for item in answer["items"]}
    users = [f"{item['popularity']:,} users" for item in answer["items"]]
    assert page.texts(".row .popularity > span:first-child") == users
    most = ask(site, "v1/items?limit=1")["items"][0]["popularity"]
    widths = page.run("return [...document.querySelectorAll('.bar-fill')].map(e => parseFloat(e.style.width))")
    expected = [100 * np.log1p(item["popularity"]) / np.log1p(most) for item in answer["items"]]
    np.testing.assert_allclose(widths, expected, rtol=1e-3)
    for row, item in zip(page.texts(".row .why"), answer["items"], strict=True):
        for reason in item["because"]:
            named = f"{reason['title'] or reason['item']} {reason['share']:.0%}".replace("%", "\u202f%") in row
            assert named == (reason["share"] >= 0.2 * item["because"][0]["share"])


def test_the_number_of_items_can_be_chosen(page, site):
    page.open(link(taste=TASTE[:1]))
    page.until_ranked(recommended(site, TASTE[:1]))
    page.one("#sizes input[value='50']").click()
    page.until_ranked(recommended(site, TASTE[:1], k=50))
    assert page.texts(".mark") == [""] * 50  # to see more is no move


def test_titles_are_text_whatever_they_hold(page):
    page.open(link(taste=["22224", "84879", "71477"]))  # the last is not known: its id has changed
    page.until(lambda: MARKUP in page.chips, "the title is not shown as it is")
    assert page.chips == [MARKUP, "84879"]  # an item without a title goes by its id
    assert page.driver.title == "A shop <of> things · relae"
    assert page.one("#dataset").text == "A shop <of> things"
    page.one("#search").send_keys("bold quoted")
    page.until(lambda: page.texts(".option-name") == [MARKUP], "not found by its title")
    assert page.run("return document.querySelectorAll('main img, main b, dialog img').length") == 0
    page.complaints = ["404"]


# --- the dial ----------------------------------------------------------------------------------------------------


def moves(before, after):
    """What the marks of `after` must say."""
    for rank, item in enumerate(after):
        places = before.index(item) - rank if item in before else None
        yield "new" if places is None else "" if places == 0 else f"{'▲' if places > 0 else '▼'} {abs(places)}"


def xi_of(page):
    return float(page.one("#xi-value").text)


def test_the_dial_ranks_anew_for_the_keyboard(page, site):
    low, high = ask(site, "v1/model")["xi_interval"]
    page.open(link(taste=TASTE[:2], k=20))
    own = recommended(site, TASTE[:2], k=20)
    page.until_ranked(own)
    assert xi_of(page) == 0.3
    page.one("#xi").send_keys("\ue010")  # End
    page.until_ranked(recommended(site, TASTE[:2], k=20, xi=1.0))
    assert page.ranked != own  # the order really changed
    assert page.texts(".mark > [aria-hidden]") == [mark for mark in moves(own, page.ranked) if mark]
    assert "since ξ 0.300" in page.one("#status").text
    assert high <= xi_of(page) < high + 0.01
    last = page.ranked
    page.press("ARROW_LEFT", "ARROW_LEFT")
    page.settle()
    assert page.ranked == recommended(site, TASTE[:2], k=20, xi=xi_of(page))
    page.press("HOME")
    page.until_ranked(recommended(site, TASTE[:2], k=20, xi=0.0))
    assert low - 0.01 < xi_of(page) <= low
    assert page.ranked != last
    page.one("#fine .link").click()
    page.until_ranked(own)
    assert xi_of(page) == 0.3
    assert page.focused == "xi"


def rarity_of(page):
    return float(page.one("#item_norm-value").text.replace("−", "-"))


def test_rarity_ranks_anew_for_the_keyboard(page, site):
    page.open(link(taste=TASTE[:2], k=20))
    own = recommended(site, TASTE[:2], k=20)
    page.until_ranked(own)
    assert (rarity_of(page), page.one("#item_norm").get_attribute("value")) == (0, "50")
    page.one("#item_norm").send_keys("\ue010")  # End
    rare = recommended(site, TASTE[:2], k=20, item_norm=0.5)
    page.until_ranked(rare)
    assert page.texts(".mark > [aria-hidden]") == [mark for mark in moves(own, rare) if mark]
    assert "since rarity 0.00" in page.one("#status").text
    assert page.one("#item_norm-value").text == "+0.50"
    page.press("ARROW_LEFT", "ARROW_LEFT")
    page.until_ranked(recommended(site, TASTE[:2], k=20, item_norm=0.48))
    page.press("HOME")
    popular = recommended(site, TASTE[:2], k=20, item_norm=-0.5)
    page.until_ranked(popular)
    assert page.one("#item_norm-value").text == "−0.50"
    assert len({tuple(own), tuple(rare), tuple(popular)}) == 3
    page.one("#rarity .link").click()
    page.until_ranked(own)
    assert rarity_of(page) == 0
    assert page.focused == "item_norm"


def test_both_dials_count(page, site):
    page.open(link(taste=TASTE[:2], k=20, item_norm=0.4))
    page.until_ranked(recommended(site, TASTE[:2], k=20, item_norm=0.4))
    page.one("#xi").send_keys("\ue011")  # Home
    page.until_ranked(recommended(site, TASTE[:2], k=20, item_norm=0.4, xi=0.0))
    assert rarity_of(page) == 0.4
    page.one("#item_norm").send_keys("\ue012")  # left
    page.until_ranked(recommended(site, TASTE[:2], k=20, item_norm=0.39, xi=0.0))
    assert "since rarity +0.40" in page.one("#status").text


def test_a_model_that_is_rarer_than_the_dial(page, model, folder):
    """Its own value is within the dial's ends."""
    with serving_another(model.with_dials(item_norm=0.7), folder, log=False) as other:
        page.open(link(taste=TASTE[:2]), site=other)
        page.until_ranked(recommended(other, TASTE[:2]))
        assert (rarity_of(page), page.one("#item_norm").get_attribute("value")) == (0.7, "100")
        assert "DAN, l2 50, dropout 0.3, ξ 0.3, β 0, α 0.7, γ 0" in page.one("#footer").text
        page.one("#item_norm").send_keys("\ue011")  # Home
        page.until_ranked(recommended(other, TASTE[:2], item_norm=-0.5))
        page.one("#rarity .link").click()
        page.until_ranked(recommended(other, TASTE[:2]))


def test_the_dial_can_be_dragged(page, site):
    from selenium.webdriver import ActionChains

    page.open(link(taste=TASTE[:2], k=20))
    page.until_ranked(recommended(site, TASTE[:2], k=20))
    dial, box = page.one("#xi"), page.one("#chart")
    thumb = page.run(
        "const b = arguments[0].getBoundingClientRect(); return (b.width - 22) * (arguments[0].value / 100 - .5)", dial
    )
    drag = ActionChains(page.driver, duration=30).move_to_element_with_offset(dial, round(thumb), 0).click_and_hold()
    drag.move_by_offset(-40, 0).move_by_offset(-60, 0).release().perform()
    page.settle()
    assert xi_of(page) < 0.29
    assert page.ranked == recommended(site, TASTE[:2], k=20, xi=xi_of(page))
    middle = page.run("return arguments[0].clientWidth", box) // 2
    drag = ActionChains(page.driver, duration=30).move_to_element(box).click_and_hold()
    drag.move_by_offset(middle // 2, 0).move_by_offset(middle, 0).release().perform()
    page.settle()
    assert page.one("#xi").get_attribute("value") == "100"
    assert page.ranked == recommended(site, TASTE[:2], k=20, xi=1.0)
    assert page.focused == "xi"


def test_the_chart_turns_the_dial_it_is_of(page, site):
    from selenium.webdriver import ActionChains

    page.open(link(taste=TASTE[:2], k=20))
    page.until_ranked(recommended(site, TASTE[:2], k=20))
    page.until(lambda: page.all("#chart svg"), "no chart")
    box = page.one("#chart")
    drag = ActionChains(page.driver, duration=30).move_to_element(box).click_and_hold()
    drag.move_by_offset(40, 0).move_by_offset(60, 0).release().perform()
    page.settle()
    assert rarity_of(page) > 0.2
    assert page.ranked == recommended(site, TASTE[:2], k=20, item_norm=rarity_of(page))
    assert page.focused == "item_norm"
    assert xi_of(page) == 0.3


def test_a_dial_in_motion_asks_one_question_at_a_time(page, site):
    page.open(link(taste=TASTE[:2], k=20))
    page.until_ranked(recommended(site, TASTE[:2], k=20))
    page.run("window.asked = []; window.most = 0")
    page.run("""
        const dial = document.getElementById('xi');
        for (let at = 0; at <= 90; at += 1)
          setTimeout(() => { dial.value = at; dial.dispatchEvent(new Event('input')); }, 2 * at);
        window.delays = Array(5).fill(40); window.lastAsked = performance.now();
    """)
    page.settle()
    asked = page.run("return window.asked")
    assert page.run("return window.most") == 1
    assert 1 < len(asked) < 60
    assert asked[-1]["xi"] == pytest.approx(xi_of(page))
    assert page.ranked == recommended(site, TASTE[:2], k=20, xi=asked[-1]["xi"])


def test_an_answer_that_is_out_of_date_is_never_shown(page, site):
    page.open(link(taste=["22423", "22784"]))
    both, one = recommended(site, ["22423", "22784"]), recommended(site, ["22784"])
    page.until_ranked(both)
    page.run("""
        window.delays = [400, 0]; window.seen = [];
        const rows = document.getElementById('rows');
        new MutationObserver(() => window.seen.push([...rows.children].map(row => row.dataset.item).join()))
          .observe(rows, {childList: true});
        document.querySelector('#chips button').click();
        document.querySelector('#chips button').click();
    """)
    page.until(lambda: page.one("#start").is_displayed(), "not at the beginning")
    page.settle()
    assert ",".join(one) not in page.run("return window.seen")
    assert page.ranked == []


def about(popularity):
    """Three digits, as the page writes them; halves of what is written go up, as in a browser."""
    digits = Decimal(1) if popularity >= 100 else Decimal("0.1")
    return f"{Decimal(str(popularity)).quantize(digits, ROUND_HALF_UP).normalize():f}"


RARITIES = [round(-0.5 + at / 10, 1) for at in range(11)]


@pytest.mark.parametrize(
    ("turned", "along"),
    [
        ({"xi": 0.1}, {}),
        ({}, {"item_norms": RARITIES}),
        ({"item_norm": 0.33}, {"item_norms": RARITIES}),
        ({"item_norm": 0.25, "xi": 0.1}, {"item_norms": RARITIES, "xi": 0.1}),
    ],
)
def test_the_chart_shows_the_path(page, site, turned, along):
    page.open(link(taste=TASTE[:2], k=20, **turned))
    page.until_ranked(recommended(site, TASTE[:2], k=20, **turned))
    page.until(lambda: page.all("#chart svg"), "no chart")
    path = ask(site, "v1/path", {"history": TASTE[:2], "k": 20, **along})["path"]
    at = {"xis": [turned.get("xi", 0.3)], "item_norm": turned.get("item_norm")}
    [now] = ask(site, "v1/path", {"history": TASTE[:2], "k": 20, **at})["path"]
    words = page.one("#chart svg").get_attribute("aria-label")
    for part in (
        f"from {about(path[0]['popularity'])} to {about(path[-1]['popularity'])}",
        f"Now: {about(now['popularity'])} users",
    ):
        assert part in words
    assert f"{now['tail_share']:.0%}".replace("%", "\u202f%") in words
    line = page.one("#chart .line.accent").get_attribute("d").strip("M").split("L")
    heights = [-float(point.split()[1]) for point in line]
    assert np.array_equal(np.sign(np.diff(heights)), np.sign(np.diff([point["tail_share"] for point in path])))
    for dial in ("xi", "item_norm"):
        assert f"{about(now['popularity'])} users per item" in page.one(f"#{dial}").get_attribute("aria-valuetext")


def test_the_chart_is_along_the_dial_in_the_hand(page, site):
    page.open(link(taste=TASTE[:2], k=20))

    def until_along(words, **body):
        path = ask(site, "v1/path", {"history": TASTE[:2], "k": 20, **body})["path"]
        first, last = about(path[0]["popularity"]), about(path[-1]["popularity"])
        ends = f"From {words}, users per item go from {first} to {last} and"
        page.until(lambda: ends in page.run("return document.querySelector('#chart svg')?.ariaLabel ?? ''"), ends)

    until_along("popular to rare", item_norms=RARITIES)
    page.one("#xi").send_keys("\ue011")  # Home
    until_along("the smallest ξ to the largest")
    assert page.texts(".in-hand label") == [f"Fine tuning, ξ {xi_of(page):.3f}"]
    page.one("#item_norm").send_keys("\ue010")  # End
    until_along("popular to rare", item_norms=RARITIES, xi=xi_of(page))
    assert page.texts(".in-hand label") == ["Rarity +0.50"]
    page.one("#xi").send_keys("\ue010")
    until_along("the smallest ξ to the largest", item_norm=0.5)


def test_rarity_says_what_it_does(page, site):
    page.open(link(taste=TASTE[:2], k=20))
    page.until(lambda: page.all("#chart svg"), "no chart")
    assert page.texts("#rarity .ends span:not(.brief)") == ["popular", "rare"]
    assert page.one("#item_norm").get_attribute("aria-label") == "Rarity, from popular to rare"
    assert page.one("#item_norm-words").text == "Further right is what fewer people have."
    read = "import('/static/dial.js').then(dial => arguments[1](dial.ofRarity(arguments[0])))"

    def of(*points):
        path = [dict(zip(("popularity", "tail_share", "items"), point, strict=True)) for point in points]
        return page.driver.execute_async_script(read, path)

    assert "does not change" in of((50, 0, [1]), (50, 0, [1]))["words"]
    assert "fewer people" in of((50, 0, [1]), (40, 0, [2]))["words"]
    assert "fewer people" in of((50, 0, [1]), (50, 0.5, [2]))["words"]
    contrary = of((40, 0, [1]), (50, 0, [2]))
    assert ("no rarer" in contrary["words"], contrary["tail"]) == (True, "none")


def test_the_ends_are_called_what_they_are(page, site, model):
    """On this data most lists go to the long tail as ξ grows. One that does not is found, and told from the others."""
    tastes = np.random.default_rng(0).permuted(np.tile(np.arange(len(model.items_)), (600, 1)), axis=1)[:, :2]
    histories = np.zeros((len(tastes), len(model.items_)), np.float32)
    np.put_along_axis(histories, tastes, 1, axis=1)
    (first, _), (last, _) = model.recommend_path(histories, model.xi_interval_, 10)
    popularity, tail = model.item_counts_, ~head_items(model.item_counts_)
    fewer = popularity[first].mean(axis=1) / popularity[last].mean(axis=1)
    rarer = tail[last].mean(axis=1) - tail[first].mean(axis=1)
    usual = tastes[np.flatnonzero((fewer > 1.01) & (rarer > 0))[0]]
    unusual = tastes[np.flatnonzero((fewer < 0.99) & (rarer <= 0))[0]]
    seen = []
    for taste in (usual, unusual):
        page.open(link(taste=[str(item) for item in model.items_.take(taste)], xi=0.1))
        page.until(lambda: "ξ" in page.one("#xi-words").text, "no words")
        seen.append(tuple(page.texts("#fine .ends span:not(.brief)")))
        assert ("smaller ξ" in page.one("#xi-words").text) == (taste is unusual)
    assert seen[0] == ("popular", "long tail")
    assert seen[1] in [("long tail", "popular"), ("less popular", "more popular")]


def test_freshness_ranks_anew_for_the_keyboard(page, timed):
    page.open(link(taste=TASTE[:2], k=20), site=timed)
    own = recommended(timed, TASTE[:2], k=20)
    page.until_ranked(own)
    assert (page.one("#freshness-value").text, page.texts("#fresh .link")) == ("0.100", ["model’s own"])
    page.one("#freshness").send_keys("\ue010")  # End
    wanted = recommended(timed, TASTE[:2], k=20, freshness=1)
    page.until_ranked(wanted)
    assert page.texts(".mark > [aria-hidden]") == [mark for mark in moves(own, wanted) if mark]
    assert "since freshness 0.100" in page.one("#status").text
    assert page.texts(".in-hand label") == ["Freshness 1.000"]
    page.press("HOME")
    timeless = recommended(timed, TASTE[:2], k=20, freshness=0)
    page.until_ranked(timeless)
    assert len({tuple(own), tuple(wanted), tuple(timeless)}) == 3
    page.press("ARROW_RIGHT", "ARROW_RIGHT", "ARROW_RIGHT")
    page.settle()
    assert page.one("#freshness-value").text == "0.005"
    assert "freshness=0.005" in page.driver.current_url
    path = ask(timed, "v1/path", {"history": TASTE[:2], "k": 20, "item_norms": RARITIES, "freshness": 0.005})["path"]
    ends = " to ".join(about(path[at]["popularity"]) for at in (0, -1))  # the chart is still along rarity
    assert f"From popular to rare, users per item go from {ends}" in page.one("#chart svg").get_attribute("aria-label")
    page.one("#fresh .link").click()
    page.until_ranked(own)
    assert page.focused == "freshness"


def test_freshness_is_in_the_link_and_counts_beside_the_others(page, timed):
    turned = {"freshness": 0.35, "item_norm": 0.2, "xi": 0.1}
    page.open(link(taste=TASTE[:2], **turned), site=timed)
    page.until_ranked(recommended(timed, TASTE[:2], **turned))
    assert page.one("#freshness-value").text == "0.350"
    assert page.texts("#fresh .ends span:not(.brief)") == ["timeless", "fresh"]
    assert page.one("#freshness").get_attribute("aria-label") == "Freshness, from timeless to fresh"
    assert "5 days ago counts half" in page.one("#freshness-words").text
    spoken = "at rarity +0.20, freshness 0.350 and ξ 0.100"
    page.until(lambda: spoken in page.one("#live").get_attribute("textContent"), "silence")


def test_demand_is_a_reason(page, timed):
    page.open(link(taste=TASTE[:2], k=20), site=timed)
    answer = ask(timed, "v1/recommend", {"history": TASTE[:2], "k": 20, "explain": True})
    page.until_ranked(ids(answer))
    seen = set()
    for row, item in zip(page.texts(".row .why"), answer["items"], strict=True):
        most = max(item["demand_share"], item["because"][0]["share"])
        words = f"in demand now {item['demand_share']:.0%}".replace("%", "\u202f%")
        assert (words in row) == (item["demand_share"] >= 0.2 * most)
        if item["demand_share"] == most:
            assert row.startswith(words)
        seen.add(row.startswith("in demand now"))
    assert True in seen
    page.one("#freshness").send_keys("\ue011")  # Home
    page.until_ranked(recommended(timed, TASTE[:2], k=20, freshness=0))
    assert not any("in demand" in row for row in page.texts(".row .why"))


def test_every_step_of_freshness_is_a_value_of_its_own(page):
    page.open()
    script = """
        const [own, most, done] = arguments;
        import('/static/dial.js').then(({ Scale, STEPS }) => {
          const scale = new Scale([0, most], own, [0, 10], { power: 1.5 });
          const steps = Array.from({ length: STEPS + 1 }, (_, step) => step);
          done(steps.map(step => [scale.step(scale.value(step) ?? own), scale.value(step) ?? own]));
        });
    """
    for own, most in ((0, 1), (0.1, 1), (2.56, 5.12), (10, 10)):
        steps, values = zip(*page.driver.execute_async_script(script, own, most), strict=True)
        assert list(steps) == list(range(101))
        assert np.all(np.diff(values) > 0)
        assert (values[0], values[-1]) == (0, most)
        assert values[1] < most / 500  # finer near 0


def test_a_model_without_times_has_no_freshness(page, site):
    page.open(link(taste=TASTE[:2], freshness=0.3))
    page.until_ranked(recommended(site, TASTE[:2]))
    assert "freshness 0.3, and this model has no freshness" in page.one("#notices").text
    assert not page.one("#fresh").is_displayed()
    assert "half-life" not in page.one("#footer").text


def test_the_footer_names_the_parameters_of_time(page, timed):
    page.open(site=timed)
    page.until(lambda: page.one("#footer").text, "no footer")
    words = "RDLAE, l2 50, dropout 0.3, ξ 0.3, half-life 60 days, fading 0.25, freshness 0.1 over 5 days"
    assert words in page.one("#footer").text


@pytest.mark.parametrize("width", [320, 900, 1200])
def test_three_dials_have_room(page, timed, width):
    page.view(width).open(link(taste=TASTE[:2], freshness=0.999), site=timed)
    page.until(lambda: len(page.ranked) == 10 and page.all("#chart svg"), "no recommendations")
    assert page.run("return document.documentElement.scrollWidth") <= width
    assert page.run("return [...document.querySelectorAll('.dial-line')].every(e => e.scrollWidth <= e.clientWidth)")
    assert page.run(CONTRASTS) == []


def test_rows_glide_unless_motion_is_unwanted(page, site):
    for motion, glides in (("no-preference", True), ("reduce", False)):
        page.view(motion=motion).open(link(taste=TASTE[:2], k=20))
        page.until_ranked(recommended(site, TASTE[:2], k=20))
        page.settle()
        page.run("""
            window.glided = 0;
            const plain = Element.prototype.animate;
            Element.prototype.animate = function (...a) { window.glided += 1; return plain.apply(this, a); };
        """)
        page.one("#xi").send_keys("\ue010")
        page.until_ranked(recommended(site, TASTE[:2], k=20, xi=1.0))
        assert (page.run("return window.glided") > 0) == glides


# --- similar items -----------------------------------------------------------------------------------------------


def test_similar_items_open_beside_the_list(page, site):
    page.open(link(taste=["22423"]))
    first = recommended(site, ["22423"])
    page.until_ranked(first)
    page.all("button.title")[1].click()
    page.until(lambda: page.one("#similar").is_displayed(), "no dialog")
    similar = ask(site, f"v1/similar/{first[1]}?k=10")
    assert page.texts("#similar .likes .title") == [called(item) for item in similar["items"]]
    assert page.run("return document.getElementById('similar').contains(document.activeElement)")
    page.all("#similar .likes .toggle")[0].click()
    added = similar["items"][0]["item"]
    page.until_ranked(recommended(site, ["22423", added]))
    assert page.all("#similar .likes .toggle")[0].get_attribute("aria-pressed") == "true"
    page.all("#similar .likes .toggle")[0].click()
    page.until_ranked(first)
    page.all("#similar .likes .title")[0].click()  # and on from there
    name = similar["items"][0]["title"]
    page.until(lambda: page.one("#similar-heading bdi").text == name, "not the next item")
    page.press("ESCAPE")
    page.until(lambda: not page.one("#similar").is_displayed(), "Escape does not close")
    assert page.run("return document.activeElement === document.querySelectorAll('button.title')[1]")


def test_any_id_will_do(page, site):
    page.open(link(taste=[SLASHED]))
    page.until(lambda: page.chips and page.chips != [SLASHED], "its title was not asked for")
    page.until_ranked(recommended(site, [SLASHED]))
    page.run("document.querySelector(`[data-item]`).scrollIntoView()")
    assert ask(site, f"v1/items/{quote(SLASHED)}")["title"] == page.chips[0]


# --- the link ----------------------------------------------------------------------------------------------------


def test_a_link_restores_everything_in_a_new_window(page, site):
    page.open(link(taste=TASTE[:1]))
    page.until_ranked(recommended(site, TASTE[:1]))
    page.one("#sizes input[value='20']").click()
    page.until_ranked(recommended(site, TASTE[:1], k=20))
    denied = page.ranked[3]
    page.all("[data-control=deny]")[3].click()
    page.until_ranked(recommended(site, TASTE[:1], k=20, deny=[denied]))
    page.one("#xi").send_keys("\ue00e", "\ue00e")  # two pages down
    page.one("#item_norm").send_keys("\ue00e")
    page.settle()
    wanted = page.ranked, page.chips, page.texts("#denied-chips span"), xi_of(page), rarity_of(page)
    assert wanted[0] == recommended(site, TASTE[:1], k=20, deny=[denied], xi=wanted[3], item_norm=wanted[4])
    permissions = {
        "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"],
        "origin": str(site.base_url),
    }
    page.driver.execute_cdp_cmd("Browser.grantPermissions", permissions)
    page.one("#copy").click()
    page.until(lambda: page.one("#copy").text == "Copied", "not copied")
    copied = page.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert copied == page.driver.current_url
    old = page.driver.current_window_handle
    page.driver.switch_to.new_window("window")
    try:
        page.view()
        page.driver.get(copied)
        page.until_ranked(wanted[0])
        page.until(lambda: page.chips == wanted[1], "another taste")
        page.until(lambda: page.texts("#denied-chips span") == wanted[2], "other items denied")
        assert (xi_of(page), rarity_of(page)) == wanted[3:]
        assert page.one("#sizes input:checked").get_attribute("value") == "20"
        assert page.texts(".mark") == [""] * 20
    finally:
        page.driver.close()
        page.driver.switch_to.window(old)


def test_back_undoes_a_step(page, site):
    page.open(link(taste=["22423"]))
    first = recommended(site, ["22423"])
    page.until_ranked(first)
    page.all("[data-control=like]")[0].click()
    page.until_ranked(recommended(site, ["22423", first[0]]))
    page.one("#xi").send_keys("\ue011")  # Home: where the dial stands is no step of its own
    page.settle()
    second = page.ranked
    page.driver.back()
    page.until_ranked(first)
    assert len(page.chips) == 1
    page.driver.forward()
    page.until_ranked(second)
    assert len(page.chips) == 2


def test_what_a_link_gets_wrong_is_said(page, site):
    page.complaints = ["404"]
    page.open(link(taste=["22423", "no such thing"], deny=["nor this"], xi=7, item_norm="rare", k=11))
    page.until(lambda: "no such thing" in page.one("#notices").text, "an unknown item without a word")
    page.until(lambda: "nor this" in page.one("#notices").text, "an unknown item without a word")
    for part in ("no such thing", "ξ 7, and it lies between 0 and 1", "rarity rare, and it lies", "11 items"):
        assert part in page.one("#notices").text
    page.until_ranked(recommended(site, ["22423"]))
    assert len(page.chips) == 1
    assert (xi_of(page), rarity_of(page)) == (0.3, 0)
    page.settle()
    page.open(link(taste=["nothing"]))
    page.until(
        lambda: page.one("#start").is_displayed() and "nothing" in page.one("#notices").text, "not at the beginning"
    )


# --- when things are otherwise -----------------------------------------------------------------------------------


def test_a_server_that_is_gone_is_told_of(page, folder):
    page.complaints = ["net::ERR_"]
    with serving(folder, log=False) as other:
        page.open(link(taste=["22423"]), site=other)
        page.until_ranked(recommended(other, ["22423"]))
    page.one("#xi").send_keys("\ue010")
    page.until(lambda: "does not answer" in page.one("#notices").text, "not a word")
    assert page.one("#notices [role=alert] button").text == "Try again"


def test_a_connection_that_comes_back_is_used_again(page, site):
    page.complaints = ["net::ERR_INTERNET_DISCONNECTED"]
    page.open(link(taste=TASTE[:2]))
    page.until_ranked(recommended(site, TASTE[:2]))
    page.driver.execute_cdp_cmd("Network.enable", {})

    def turn_in_vain(key):
        shown, lost = page.ranked, {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        page.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {**lost, "offline": True})
        try:
            page.one("#xi").send_keys(key)
            page.until(lambda: "does not answer" in page.one("#notices").text, "not a word")
            assert page.ranked == shown
        finally:
            page.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {**lost, "offline": False})

    turn_in_vain("\ue010")
    page.one("#notices button").click()
    page.until_ranked(recommended(site, TASTE[:2], xi=1.0))
    assert page.one("#notices").text == ""
    turn_in_vain("\ue011")
    page.press("ARROW_RIGHT", "ARROW_LEFT")  # to go on is to try again
    page.until_ranked(recommended(site, TASTE[:2], xi=0.0))
    page.until(lambda: page.one("#notices").text == "", "the old message stays")


def test_the_key_is_asked_for_and_kept(page, folder):
    page.complaints = ["401"]
    with serving(folder, api_key="sésame", log=False) as locked:
        page.open(link(taste=["22423"]), site=locked)
        page.until(lambda: page.one("#key").is_displayed(), "no question")
        assert page.focused == "key-value"
        page.one("#key-value").send_keys("wrong", "\ue007")
        page.until(lambda: "does not take this key" in page.one("#key-error").text, "not a word")
        page.one("#key-value").clear()
        page.one("#key-value").send_keys("sésame", "\ue007")
        page.until(lambda: len(page.ranked) == 10, "no recommendations")
        assert not page.one("#key").is_displayed()
        assert "same" not in page.driver.current_url
        page.driver.get_log("browser")
        page.driver.refresh()
        page.until(lambda: len(page.ranked) == 10, "the key was forgotten")
        assert page.driver.get_log("browser") == []


def test_a_tab_left_open_finds_the_new_model(page, folder, model, data, tmp_path):
    page.complaints = ["401"]
    shutil.copytree(folder, tmp_path / "model")
    with serving(tmp_path / "model", api_key="key", log=False) as locked:
        locked.headers["Authorization"] = "Bearer key"
        page.open(link(taste=["22423"]), site=locked)
        page.until(lambda: page.one("#key").is_displayed(), "no question")
        page.press("ESCAPE")
        page.until(lambda: page.texts(".notice button")[:1] == ["Enter the key"], "no way on")
        page.one(".notice button").click()
        page.until(lambda: page.one("#key").is_displayed(), "no second question")
        page.one("#key-value").send_keys("key", "\ue007")
        page.until_ranked(recommended(locked, ["22423"]))
        store.save(model.with_xi(0.1), tmp_path / "model", title="A newer shop")
        ask(locked, "v1/reload", {})
        page.run("document.dispatchEvent(new Event('visibilitychange'))")
        page.until(lambda: page.one("#dataset").text == "A newer shop", "still the old one")
        page.until_ranked(recommended(locked, ["22423"], xi=0.1))
        assert xi_of(page) == 0.1
        assert not page.one("#user-form").is_displayed()  # this one was saved without users


def test_a_model_without_xi_has_no_dial(page, data, tmp_path):
    store.save(Popularity().fit(data), tmp_path / "model")
    with serving(tmp_path / "model", log=False) as plain:
        page.open(link(taste=["22423"], xi=0.2, item_norm=0.1), site=plain)
        page.until_ranked(recommended(plain, ["22423"]))
        assert "rarity 0.1, and this model has no dials" in page.one("#notices").text
        assert not page.one("#dial").is_displayed()
        assert page.texts(".why") == [""] * 10
        assert page.all("button.title") == []
        assert not page.one("#user-form").is_displayed()  # it was saved without its users
        page.driver.get("about:blank")  # or the browser may ask for the icon when the service is gone


# --- for everyone ------------------------------------------------------------------------------------------------


def test_all_of_it_works_by_keyboard_alone(page, site):
    page.open()
    page.until(lambda: page.all(".starter"), "nothing to start from")

    def tab_to(*names):
        for _ in range(60):
            page.press("TAB")
            if page.focused in names:
                ring = page.run("""
                    const e = document.activeElement, at = e.type === 'range' ? '::-webkit-slider-thumb' : null;
                    return getComputedStyle(at ? e : e.type === 'radio' ? e.nextElementSibling : e, at).outlineStyle;
                """)
                assert ring != "none" or page.focused in ("xi", "item_norm")
                return
        pytest.fail(f"Tab never came to {names}")

    page.run("document.body.focus()")
    page.press("TAB", "ENTER")  # the skip link
    assert page.focused == "search"
    page.press(*"lantern")
    found = ask(site, "v1/items?q=lantern&limit=10")
    page.until(lambda: page.texts("#found .option-name") == [called(item) for item in found["items"]], "nothing found")
    page.press("ARROW_DOWN", "ENTER")
    item = ids(found)[1]
    page.until_ranked(recommended(site, [item]))
    tab_to("item_norm")
    page.press("ARROW_RIGHT")
    page.until_ranked(recommended(site, [item], item_norm=0.01))
    tab_to("xi")
    page.press("END")
    page.until_ranked(recommended(site, [item], item_norm=0.01, xi=1.0))
    tab_to("title")
    page.press("ENTER")
    page.until(lambda: page.one("#similar").is_displayed(), "no dialog")
    page.press("ESCAPE")
    page.until(lambda: page.focused == "title", "the focus is lost")
    tab_to("like")
    chosen = page.run("return document.activeElement.closest('li').dataset.item")
    page.press("ENTER")
    page.until_ranked(recommended(site, [item, chosen], item_norm=0.01, xi=1.0))
    assert page.focused == "like"


@pytest.mark.parametrize("width", [320, 360, 768, 900, 1280])
def test_nothing_sticks_out(page, site, width):
    page.view(width).open()
    page.until(lambda: page.all(".starter"), "nothing to start from")
    assert page.run("return document.documentElement.scrollWidth") <= width
    page.open(link(taste=[*TASTE[:2], "84879"], deny=["22423"]))
    page.until(lambda: len(page.ranked) == 10 and page.all("#chart svg"), "no recommendations")
    assert page.run("return document.documentElement.scrollWidth") <= width
    page.run("scrollTo(0, 500)")
    seen = page.run(
        "const b = document.getElementById('item_norm').getBoundingClientRect(); return [b.top, b.bottom, innerHeight]"
    )
    assert 0 <= seen[0] < seen[1] <= seen[2]  # the dial stays at hand
    assert page.run("return [...document.querySelectorAll('.dial-line')].every(e => e.scrollWidth <= e.clientWidth)")
    page.run("document.querySelector('button.title').click()")
    page.until(lambda: page.one("#similar").is_displayed(), "no dialog")
    assert page.run("const d = document.getElementById('similar'); return d.scrollWidth <= d.clientWidth")
    assert page.run("return document.documentElement.scrollWidth") <= width


CONTRASTS = """
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const over = (colours) => {  // the colours from the back to the front, as one
  canvas.clearRect(0, 0, 1, 1);
  for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
  return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
};
const part = x => x <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4;
const light = v => { const [r, g, b] = v.map(x => part(x / 255)); return .2126 * r + .7152 * g + .0722 * b; };
const behind = e => {
  const found = [];
  for (; e; e = e.parentElement) found.unshift(getComputedStyle(e).backgroundColor);
  return found;
};
const low = [];
for (const e of document.querySelectorAll('body *')) {
  const words = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
  if (!words || !e.checkVisibility() || e.closest('.hidden-text, .skip')) continue;
  const style = getComputedStyle(e), own = e.namespaceURI.endsWith('svg') ? style.fill : style.color;
  const back = behind(e), [a, b] = [light(over([...back, own])), light(over(back))].sort((x, y) => y - x);
  const name = e.className.baseVal ?? e.className;
  if ((a + .05) / (b + .05) < 4.5) low.push([e.tagName, name, e.textContent.slice(0, 20)]);
}
return low;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_in_both_schemes(page, site, scheme):
    page.view(scheme=scheme).open(link(taste=TASTE[:2], k=20, deny=["22423"]))
    page.until_ranked(recommended(site, TASTE[:2], k=20, deny=["22423"]))
    background = page.run("return getComputedStyle(document.body).backgroundColor")
    assert (sum(int(part) for part in background[4:-1].split(",")) > 380) == (scheme == "light")
    page.one("#xi").send_keys("\ue010")
    page.settle()
    assert "new" in page.texts(".mark > [aria-hidden]")
    assert page.run(CONTRASTS) == []
    page.one("#search").send_keys("lantern")
    page.until(lambda: page.all("#popup:not([hidden]) [role=option]"), "nothing found")
    assert page.run(CONTRASTS) == []


def test_changes_are_spoken(page, site):
    page.open(link(taste=["22423"]))
    page.until(
        lambda: "10 recommendations at rarity 0.00 and ξ 0.300" in page.one("#live").get_attribute("textContent"),
        "silence",
    )
    assert page.one("#live").get_attribute("aria-live") == "polite"
    nameless = page.run("""
        return [...document.querySelectorAll('button, input, a[href]')].filter(e => e.checkVisibility()).filter(e =>
          !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length)).map(e => e.outerHTML)
    """)
    assert nameless == []


def test_the_policy_lets_nothing_else_in(site, page):
    policy = site.get("/").headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    page.open()
    page.until(lambda: page.all(".starter"), "nothing to start from")
    page.run("const s = document.createElement('script'); s.textContent = 'window.loose = 1'; document.body.append(s)")
    assert page.run("return window.loose") is None
    page.complaints = ["Content Security Policy"]
