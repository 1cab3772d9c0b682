"""A built page as its names, its links, and what it loads."""

from html.parser import HTMLParser


class Html(HTMLParser):
    """`links` lead somewhere when they are clicked; `loads` are fetched as the page opens."""

    def __init__(self, text):
        super().__init__()
        self.names, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        for name in ("id", "name"):
            if given.get(name):
                self.names.add(given[name])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag == "link" and given.get("href") and given.get("rel") not in ("canonical", "next", "prev"):
            self.loads.append(given["href"])
        elif given.get("src"):
            self.loads.append(given["src"])
