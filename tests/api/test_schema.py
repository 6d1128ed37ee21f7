"""GET /schema and /docs."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from drf_spectacular.validation import validate_schema

from tests.api.callers import PROBLEM, Caller, refused

pytestmark = pytest.mark.django_db


@pytest.fixture
def document(ann: Caller) -> Any:
    return ann.get("/schema?format=json").json()


def test_every_address_is_described(document: Any) -> None:
    methods = {path: set(each) for path, each in document["paths"].items()}

    assert document["openapi"].startswith("3.")
    assert methods["/api/v1/me"] == {"get"}
    assert methods["/api/v1/sessions"] == {"get", "post"}
    assert methods["/api/v1/sessions/{session_id}"] == {"get", "patch", "delete"}
    assert methods["/api/v1/sessions/{session_id}/prompts"] == {"get", "post"}
    assert methods["/api/v1/sessions/{session_id}/wait"] == {"post"}
    assert methods["/api/v1/sessions/{session_id}/stream"] == {"get"}
    assert "/api/v1/" not in methods


def test_a_body_is_described_closed_and_a_refusal_as_a_problem(document: Any) -> None:
    admit = document["paths"]["/api/v1/sessions/{session_id}/prompts"]["post"]
    body = document["components"]["schemas"]["NewPrompt"]

    assert body["additionalProperties"] is False
    assert body["required"] == ["text"]
    assert set(admit["responses"]) >= {"200", "201", "400", "401", "404", "409", "413", "415", "422"}
    assert set(admit["responses"]["201"]["content"]) == {"application/json"}
    assert set(admit["responses"]["409"]["content"]) == {"application/problem+json"}


def test_the_parameters_of_a_list_are_described(document: Any) -> None:
    described = document["paths"]["/api/v1/sessions"]["get"]["parameters"]

    assert {each["name"] for each in described} == {"archived", "cursor", "limit", "needs_decision", "q"}
    assert all(each["in"] == "query" and not each.get("required") for each in described)


def contents(document: Any) -> Iterator[tuple[str, Any]]:
    """Every body and answer, each with where it stands and its schema and examples."""
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            parts = {"body": described.get("requestBody", {}), **described["responses"]}
            for name, part in parts.items():
                for kind, content in part.get("content", {}).items():
                    yield f"{method} {path} {name} {kind}", content


def test_the_document_is_openapi(document: Any) -> None:
    validate_schema(document)


def test_every_body_and_answer_has_examples_that_fit(document: Any) -> None:
    without = []
    for where, content in contents(document):
        shape = jsonschema_rs.Draft202012Validator(content["schema"] | {"components": document["components"]})
        for example in content.get("examples", {}).values():
            shape.validate(example["value"])
        if where.endswith("json") and not content.get("examples"):
            without.append(where)

    nothing_to_say = ("/resume body", "/ticket body", "/schema 200")
    assert [where for where in without if not any(each in where for each in nothing_to_say)] == []


def test_every_answer_is_typed_down_to_its_last_field(document: Any) -> None:
    schemas = document["components"]["schemas"]
    open_objects = [
        name
        for name, shape in schemas.items()
        if "properties" in shape and shape.get("additionalProperties", True)
    ]

    assert open_objects == ["Document"]
    assert '"additionalProperties": {}' not in json.dumps(document["paths"])


def test_the_codes_of_refusals_are_documented_for_each_address(document: Any) -> None:
    admit = document["paths"]["/api/v1/sessions/{session_id}/prompts"]["post"]["responses"]

    def codes(answer: Any) -> list[str]:
        found: list[str] = answer["content"][PROBLEM]["schema"]["allOf"][1]["properties"]["code"]["enum"]
        return found

    assert codes(admit["409"]) == ["prompt_conflict"]
    assert codes(admit["413"]) == ["body_too_large", "prompt_too_large"]
    assert codes(admit["422"]) == ["empty_prompt"]
    assert codes(admit["400"]) == ["invalid", "invalid_id", "malformed_json"]


def test_what_is_planned_is_documented_and_refused(ann: Caller, session_id: str, document: Any) -> None:
    compact = document["paths"]["/api/v1/sessions/{session_id}/compact"]["post"]

    assert {status for status in compact["responses"] if status < "400" or status >= "500"} == {"501"}
    refused(ann.post(f"/sessions/{session_id}/compact"), 501, "not_available")


def test_operations_have_names_of_their_own(document: Any) -> None:
    names = [each["operationId"] for path in document["paths"].values() for each in path.values()]

    assert len(names) == len(set(names)) > 20


def test_other_formats_are_refused(ann: Caller) -> None:
    refused(ann.get("/schema?format=xml"), 400, "invalid")


def test_the_page_shows_every_operation_without_scripts(ann: Caller, document: Any) -> None:
    response = ann.get("/docs", Accept="text/html")
    shown = response.content.decode()

    assert response.headers["Content-Type"].startswith("text/html")
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            assert f"{method.upper()} {path}" in shown
            assert described["summary"] in shown
    assert "prompt_conflict" in shown
    assert "<script" not in shown
    refused(ann.get("/docs", Accept="application/json"), 406, "not_acceptable")
