"""GET /schema and /docs."""

from typing import Any

import pytest

from tests.api.callers import Caller, refused

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
    assert "<script" not in shown
    refused(ann.get("/docs", Accept="application/json"), 406, "not_acceptable")
