"""A parsed HTML page: its anchors, its links, and the resources it loads."""

from html.parser import HTMLParser


class HtmlPage(HTMLParser):
    """`anchors` are link targets, `links` are followed on click, and `resources` load with the page."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.resources = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        for name in ("id", "name"):
            if values.get(name):
                self.anchors.add(values[name])
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        elif tag == "link" and values.get("href") and values.get("rel") not in ("canonical", "next", "prev"):
            self.resources.append(values["href"])
        elif values.get("src"):
            self.resources.append(values["src"])
