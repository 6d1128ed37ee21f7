"""The OpenAPI document as a page for people: plain HTML without scripts."""

import json
from collections.abc import Iterator
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

Document = dict[str, Any]


def page(document: Document) -> SafeString:
    """Each operation with its parameters, the fields of its body and its answers."""
    return format_html(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title} API</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"></head>'
        "<body><main><h1>{title} API</h1>"
        '<p>The same for programs: <a href="schema">OpenAPI document</a>.</p>{operations}</main></body></html>',
        title=document["info"]["title"],
        operations=format_html_join("", "{}", ((each,) for each in _operations(document))),
    )


def _operations(document: Document) -> Iterator[SafeString]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield format_html(
                "<section><h2><code>{} {}</code></h2><p>{}</p><p>{}</p>{}{}{}{}</section>",
                method.upper(),
                path,
                operation["summary"],
                operation.get("description", ""),
                _list("Parameters", _parameters(operation)),
                _list("Body", _fields(document, operation)),
                _list("Answers", _answers(operation)),
                _examples(operation),
            )


def _parameters(operation: Document) -> list[tuple[str, str]]:
    return [
        (each["name"], f"in the {each['in']}{_default(each['schema'])}. {each.get('description', '')}")
        for each in operation.get("parameters", [])
    ]


def _fields(document: Document, operation: Document) -> list[tuple[str, str]]:
    content = operation.get("requestBody", {}).get("content", {})
    found = []
    for media in content.values():
        name = media["schema"].get("$ref", "").rpartition("/")[2]
        model = document["components"]["schemas"].get(name, {})
        required = model.get("required", [])
        for field, described in model.get("properties", {}).items():
            found.append((field, "required" if field in required else f"optional{_default(described)}"))
    return found


def _default(described: Document) -> str:
    return f", default {described['default']}" if described.get("default") not in (None, "") else ""


def _answers(operation: Document) -> list[tuple[str, str]]:
    """With the codes of those that are refusals."""
    found = []
    for status, answer in sorted(operation["responses"].items()):
        codes = [example["summary"] for example in _given(answer) if "code" in example["value"]]
        phrase = answer["description"].partition("\n")[0]
        found.append((status, f"{phrase}: {', '.join(codes)}" if codes else phrase))
    return found


def _examples(operation: Document) -> SafeString:
    """What is sent, and what is answered when all goes well."""
    succeeded = [answer for status, answer in sorted(operation["responses"].items()) if status[0] == "2"]
    shown = [
        example for each in (operation.get("requestBody", {}), *succeeded[:1]) for example in _given(each)
    ]
    return format_html_join(
        "",
        "<details><summary>{}</summary><pre>{}</pre></details>",
        (("Example", json.dumps(example["value"], indent=2)) for example in shown),
    )


def _given(described: Document) -> list[Document]:
    """The examples of a body or an answer."""
    kinds = described.get("content", {}).values()
    return [example for kind in kinds for example in kind.get("examples", {}).values()]


def _list(title: str, items: list[tuple[str, str]]) -> SafeString:
    shown = format_html_join("", "<li><code>{}</code> {}</li>", items)
    return format_html("<h3>{}</h3><ul>{}</ul>", title, shown) if items else shown
