"""A visitor in a real browser: what they do, what they see, and what the browser reports."""

import re
import time
from decimal import ROUND_HALF_UP, Decimal
from math import inf, isinf
from urllib.parse import urlencode, urlsplit

# The grid's site and values, and the card's cell and result, once all of them are present.
SEE = """([site, cell]) => {
  const main = document.querySelector("main");
  const grid = document.querySelector("[role=grid]");
  if (main?.getAttribute("aria-busy") !== "false" || grid?.dataset.site !== site) return null;
  const told = document.querySelector("[data-testid=card] h3")?.dataset.cell;
  if (!told?.startsWith(cell ?? site + " ")) return null;
  const cells = [...grid.querySelectorAll("[role=gridcell]")];
  if (cells.length === 0 || cells.some((each) => each.textContent === "")) return null;
  const numbers = [...document.querySelectorAll("[data-testid=card] .number")];
  return {
    told,
    result: document.querySelector("[data-testid=card] .result .katex-html")?.textContent ?? null,
    cells: cells.map((each) => [+each.dataset.row, +each.dataset.column, each.textContent]),
    made: numbers.map((each) => [each.dataset.cell, each.textContent]),
    highlighted: cells
      .filter((each) => each.classList.contains("highlighted"))
      .map((each) => [+each.dataset.row, +each.dataset.column]),
  };
}"""


# Characters of formulas whose first font is not one that the page has loaded.
FOREIGN = """async () => {
  await document.fonts.ready;
  const loaded = new Set(
    [...document.fonts].filter((font) => font.status === "loaded")
      .map((font) => `${font.family.replaceAll('"', "")} ${font.style}`)
  );
  return [...document.querySelectorAll(".katex-html *")]
    .filter((each) => [...each.childNodes].some((node) => node.nodeType === 3 && /[^\\s\\u200b]/.test(node.data)))
    .map((each) => [getComputedStyle(each), each.textContent])
    .map(([style, text]) => [`${style.fontFamily.split(",")[0].replaceAll('"', "")} ${style.fontStyle}`, text])
    .filter(([font]) => !loaded.has(font));
}"""

# What is not drawn yet in one of three consecutive frames, or null.
UNFINISHED = """async () => {
  for (let i = 0; i < 3; i++) {
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const main = document.querySelector("main[aria-busy=false]");
    if (main === null) return "main is busy";
    if (main.querySelector("canvas, [data-place=detail]") === null) return "nothing is shown";
    const busy = main.querySelector("[aria-busy=true], .computing");
    if (busy !== null) return `busy: ${busy.outerHTML.slice(0, 200)}`;
    const flow = main.querySelector("[data-place=next]") !== null;
    if (flow && main.querySelector("canvas") === null) return "the flow is not drawn";
    // Before its first paint, a browser may drop user input.
    if (performance.getEntriesByName("first-contentful-paint").length === 0) return "nothing is painted";
  }
  return null;
}"""

EXPORT = re.compile("^(Export|Exportieren)$")


class Visitor:
    def __init__(self, context, server):
        self.context, self.server = context, server
        self.complaints, self.forgiven, self.asked = [], [], []
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.page = context.new_page()
        self.page.set_default_timeout(60_000)
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("request", self._ask)
        self.page.on("requestfailed", self._fail)
        self.page.on("response", self._answer)

    def _hear(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def _ask(self, request):
        self.asked.append(request)
        address = urlsplit(request.url)
        if address.scheme in ("data", "blob"):
            return
        if f"{address.scheme}://{address.netloc}" != self.server.url:
            self.complaints.append(f"another host: {request.url}")

    def _fail(self, request):
        if request.failure != "net::ERR_ABORTED":  # canceled by the page itself
            self.complaints.append(f"failed: {request.url} {request.failure}")

    def _answer(self, response):
        if response.status >= 400:
            self.complaints.append(f"status {response.status}: {response.url}")

    def forgive(self, pattern):
        """Ignore problems that the test itself causes."""
        self.forgiven.append(re.compile(pattern))

    def left(self):
        return [each for each in self.complaints if not any(known.search(each) for known in self.forgiven)]

    def open(self, token=True, **place):
        """Open the page at the URL with these parameters."""
        query = urlencode({**place, **({"token": self.server.credentials.token} if token else {})})
        self.page.goto(f"{self.server.url}/?{query}")
        self.settle()
        self.page.locator(".brand").click()  # a click always arrives; the first key press may be dropped

    def settle(self):
        """Wait until everything on screen is drawn."""
        self.expect(self._unfinished, None, seconds=120)

    def _unfinished(self):
        """What the page has yet to do, or None."""
        try:
            return self.page.evaluate(UNFINISHED)
        except Exception as error:  # Playwright's own class: without Playwright, this module is imported too
            if "Execution context was destroyed" not in str(error):
                raise
            return "loading another page"

    @property
    def url(self):
        """The address that the page has now; `page.url` may lag behind."""
        return self.page.evaluate("location.href")

    def expect(self, look, wanted, seconds=60):
        """Poll until the value is as expected; a busy browser takes time."""
        end = time.monotonic() + seconds
        while (found := look()) != wanted:
            assert time.monotonic() < end, f"{found!r} is not {wanted!r}"
            time.sleep(0.02)

    def see(self, site, cell=None):
        """The values of a site and what the card shows, once the card is about `cell` (if given)."""
        told = None if cell is None else " ".join(map(str, cell))
        seen = self.page.wait_for_function(SEE, arg=[site, told]).json_value()
        return {**seen, "result": seen["result"] and plain(seen["result"])}

    def foreign_letters(self):
        """Letters of formulas that are not in the page's own fonts, with the fonts they should be in."""
        return self.page.evaluate(FOREIGN)

    def type(self, text):
        self.prompt.fill(text)
        self.settle()

    @property
    def prompt(self):
        return self.page.get_by_label("Input text")

    @property
    def site(self):
        return self.page.locator("[role=grid]").get_attribute("data-site")

    @property
    def step(self):
        return self.page.locator("[aria-current=step]").inner_text()

    @property
    def said(self):
        """Tokens in the row headers."""
        return self.page.locator("[role=rowheader]").all_inner_texts()

    def export(self, kind, within=".detail", which=0):
        """Choose an item of an export menu."""
        self.page.locator(within).get_by_role("button", name=EXPORT).nth(which).click()
        self.page.get_by_role("menuitem", name=kind, exact=True).click()

    def button(self, name, exact=True):
        return self.page.get_by_role("button", name=name, exact=exact)


def short(x):
    """Format a number as in the page's cells."""
    size = abs(x)
    return fixed(x, 2 if size < 9.995 else 1 if size < 99.95 else 0)


def precise(x):
    """Format a number as in the page's formulas: as in cells, but small ones keep two significant digits."""
    size = abs(x)
    if isinf(x) or size == 0 or size >= 0.0995:
        return short(x)
    if size >= 0.00095:
        return fixed(x, 3 if size >= 0.00995 else 4)
    digits, power = f"{size:.1e}".split("e")
    return f"{'−' if x < 0 else ''}{digits}e{str(int(power)).replace('-', '−')}"


def plain(typeset):
    """The visible text of a typeset number as the page's cells write it."""
    return re.sub(r"×10(−?\d+)", r"e\1", typeset.replace("\u200b", ""))


def tex(x, write=precise):
    """A number in the TeX of a formula."""
    digits, *power = write(x).replace("−", "-").replace("∞", "\\infty").split("e")
    return f"{digits} \\times 10^{{{power[0]}}}" if power else digits


def fixed(x, digits):
    if isinf(x):
        return "∞" if x == inf else "−∞"
    text = str(Decimal(abs(x)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))
    return f"−{text}" if x < 0 and float(text) != 0 else text


def compact(x):
    if x != 0 and abs(x) < 0.00095:
        digits, power = f"{abs(x):.1e}".split("e")
        return f"{digits}e{int(power)}".replace("-", "−")
    exact = next((digits for digits in range(4) if abs(round(x, digits) - x) < 1e-12), 4)
    return fixed(x, exact)


def percent(p, decimals=0):
    """Format a probability as on the page: only 0 is 0%, and only 1 is 100%."""
    x, most = 100 * p, max(decimals, 1)
    unit = 10**-most
    if 0 < x < unit / 2:
        return f"<{fixed(unit, most)}%"
    if 100 - unit / 2 <= x < 100:
        return f">{fixed(100 - unit, most)}%"
    return f"{fixed(x, most if 0 < x < 9.95 or 99.5 <= x < 100 else decimals)}%"


def shows(shown, x, write=short):
    """Whether a text shows this number; rounding errors may change the last digit shown."""
    near = 1e-6 * (1 + abs(x)) if not isinf(x) else 0.0
    if "e" in shown:  # so small that rounding errors may change any digit
        return abs(float(shown.replace("−", "-")) - x) <= near + 0.05 * abs(x)
    return shown in {write(x), write(x - near), write(x + near)}


def visible(token):
    """A token as the page shows it, with control characters and the spaces around it made visible."""
    drawn = token.replace("\n", "⏎").replace("\t", "⇥")
    drawn = re.sub(r"[\x00-\x1f]", lambda found: chr(0x2400 + ord(found[0])), drawn)
    return re.sub(r"^ +| +$", lambda found: "␣" * len(found[0]), drawn)
