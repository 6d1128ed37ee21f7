"""Formatted answers: nothing a model writes becomes more than text, links and plain formatting."""

from collections.abc import Iterator
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page

from tests.browser import modules
from tests.support.requirements import requires

pytestmark = requires("chromium")

HOSTILE: Final = [
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "<svg onload=alert(1)>",
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java&#115;cript:alert(1))",
    "[x](/sign-out)",
    "<javascript:alert(1)>",
    "![x](data:text/html,<script>alert(1)</script>)",
    "![x](https://elsewhere.example/track.png)",
    '![x"onerror="alert(1)](https://elsewhere.example/"onerror="alert(1))',
    '[x](https://elsewhere.example/ "t\\"onclick=\\"alert(1)")',
    '<a href="vbscript:alert(1)">x</a>',
    '<form action="https://elsewhere.example"><input name=password></form>',
    "<iframe src=//elsewhere.example></iframe>",
    '```js"><img src=x onerror=alert(1)>\ncode\n```',
    "```html\n<img src=x onerror=alert(1)>\n```",
    "```composer\nclass of the page\n```",
    "- [ ] <img src=x onerror=alert(1)>",
    "| <img src=x onerror=alert(1)> |\n|---|\n| <script>alert(1)</script> |",
    "a <scr\n\nipt>alert(1)</scr\n\nipt>",
    "&lt;img src=x onerror=alert(1)&gt;",
]

TEXT: Final = """# Title

First *soft* and **loud**
with a second line.

- one

- two
  with more

3. three
4. four

```python
def f():

    return "```"
```

    indented code

| a | b |
|:--|--:|
| 1 | 2 |

> said

~~~
no language

~~~
The end 🌊.
"""

LOADED: Final = """
    window.fired = false;
    window.alert = () => { window.fired = true; };
    const markdown = await m.loadMarkdown();
    const part = document.createElement("div");
    part.dataset.part = "p";
    const place = document.createElement("div");
    part.append(place);
    document.body.replaceChildren(part);
    const formatted = new m.Formatted({ place, markdown });
    const grown = (text) => { formatted.update(text, { isFinal: false }); };
    const settled = () => new Promise((resolve) => {
        const look = () => (formatted.timer === null ? resolve() : setTimeout(look, 1));
        look();
    });
"""


@pytest.fixture(scope="module")
def page(chromium: Browser) -> Iterator[Page]:
    with modules.opened(chromium) as opened:
        yield opened


def run(page: Page, body: str, argument: Any = None) -> Any:
    return modules.run(page, "markdown.js", LOADED + body, argument)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_becomes_nothing_that_acts(page: Page, text: str) -> None:
    body = """
        const bad = [];
        const look = () => {
            for (const element of place.querySelectorAll("*")) {
                const names = element.getAttributeNames();
                const { tagName, href } = element;
                const allowed = ["href", "rel", "target", "class", "type", "data-role", "tabindex", "align", "start"];
                if (names.some((name) => !allowed.includes(name))) bad.push([tagName, names]);
                if (href !== undefined && !/^(https?:|mailto:|$)/.test(href)) bad.push([tagName, href]);
                if (["IMG", "SCRIPT", "SVG", "IFRAME", "FORM", "INPUT", "STYLE"].includes(tagName.toUpperCase())) bad.push(tagName);
                for (const name of element.classList) {
                    if (!/^(hljs-|language-|code-|table-box|ghost)/.test(name)) bad.push([tagName, name]);
                }
            }
        };
        for (let end = 1; end <= input.length; end += 1) {
            grown(input.slice(0, end));
            if (end % 7 === 0) { await settled(); look(); }
        }
        formatted.update(input, { isFinal: true });
        look();
        await new Promise((resolve) => setTimeout(resolve, 20));
        return { bad, fired: window.fired };
    """

    assert run(page, body, text) == {"bad": [], "fired": False}


def test_markup_of_a_model_is_readable_as_text(page: Page) -> None:
    body = "formatted.update(input, { isFinal: true }); return place.textContent.trim();"

    assert run(page, body, "a <b>bold</b> <img src=x>") == "a <b>bold</b> <img src=x>"


def test_wherever_the_stream_pauses_the_end_looks_as_if_it_had_come_at_once(page: Page) -> None:
    body = """
        formatted.update(input, { isFinal: true });
        const whole = place.innerHTML;
        const different = [];
        for (let cut = 1; cut < input.length; cut += 5) {
            grown(input.slice(0, cut));
            await settled();
            formatted.update(input, { isFinal: true });
            if (place.innerHTML !== whole) different.push(cut);
        }
        return { different, whole };
    """

    answer = run(page, body, TEXT)

    assert answer["different"] == []
    assert '<span class="hljs-keyword">def</span>' in answer["whole"]
    assert 'align="right"' in answer["whole"]


def test_settled_blocks_are_made_once_and_text_is_never_lost_on_the_way(page: Page) -> None:
    body = """
        const plain = (text) => text.replace(/[^a-z]+/gi, "");
        formatted.pause = 0;
        let first = null, kept = true, whole = true;
        for (let cut = 1; cut < input.length; cut += 3) {
            grown(input.slice(0, cut));
            await settled();
            first ??= formatted.settled > 0 ? place.firstElementChild : null;
            kept &&= first === null || first === place.firstElementChild;
            const expected = document.createElement("div");
            expected.append(markdown.render(input.slice(0, cut), { isFinal: false }));
            whole &&= plain(place.textContent) === plain(expected.textContent);
        }
        return { kept, whole, began: first !== null };
    """

    assert run(page, body, TEXT) == {"kept": True, "whole": True, "began": True}


def test_a_long_answer_is_formatted_in_time_linear_in_its_length(page: Page) -> None:
    body = """
        const cost = (paragraphs) => {
            const began = performance.now();
            let text = "", settled = 0, scanned = 0;
            for (let at = 0; at < paragraphs; at += 1) {
                text += "word ".repeat(40) + "\\n\\n";
                const next = m.settledUpTo(text, settled);
                scanned += text.length - settled;
                markdown.render(text.slice(settled), { isFinal: false });
                settled = next;
            }
            return { time: performance.now() - began, scanned: scanned / text.length };
        };
        cost(50);
        return [cost(200), cost(2000)];
    """

    short, long = run(page, body)

    assert long["scanned"] < 4
    assert long["time"] < 40 * short["time"]
