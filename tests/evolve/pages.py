"""Reports as pages: what a browser would make of them, and what it does make."""

from __future__ import annotations

import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

HOSTILE = (
    "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
)
"""A text that would change the page's title if any of it ran."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
in_a_browser = pytest.mark.skipif(
    CHROMIUM is None,
    reason=f"the page is not opened: none of {', '.join(BROWSERS)} is on the PATH",
)


class Page(HTMLParser):
    """What a browser would make of the page: its elements, their attributes and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def shown(self, tag: str) -> list[str | None]:
        """The ids of the entries that are not hidden."""
        return [
            a.get("id")
            for t, a in self.elements
            if t == tag and "entry" in str(a.get("class")) and "hidden" not in a
        ]


def opened(page: Path, profile: Path, *, at: str = "", **wanted: str) -> Page:
    """The page as headless Chromium has it once its script has run.

    `wanted` is what its address asks the filter for, `at` the entry that it leads to.
    """
    assert CHROMIUM is not None
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
             "--disable-background-networking", "--disable-component-update")  # fmt: skip
    asked = f"#?{urlencode(wanted)}" if wanted else f"#{quote(at)}" if at else ""
    address = f"{page.as_uri()}{asked}"
    command = [CHROMIUM, *flags, f"--user-data-dir={profile}", "--dump-dom", address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return Page(done.stdout)


def needs_nothing_from_elsewhere(text: str) -> None:
    """Assert that a page loads nothing, and that its policy lets in its own script and style."""
    page = Page(text)
    for _, attributes in page.elements:
        assert not {"src", "action", "srcset"} & attributes.keys()
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        assert (attributes.get("href") or "#").startswith("#")
    (policy,) = [a["content"] for tag, a in page.elements if tag == "meta" and "http-equiv" in a]
    assert policy is not None and policy.startswith("default-src 'none'")
    assert "unsafe" not in policy and policy.count("'sha256-") == 2
    assert "url(" not in text and "@import" not in text


def makes_no_element_of(plain: str, hostile: str) -> None:
    """Assert that a page with hostile texts has the elements and attributes of one without."""
    one, other = Page(plain), Page(hostile)
    tags = [tag for tag, _ in other.elements]
    assert tags.count("script") == 1 and "img" not in tags
    assert {tuple(sorted(a)) for _, a in other.elements} <= {
        tuple(sorted(a)) for _, a in one.elements
    }
    assert HOSTILE in "".join(other.text)
