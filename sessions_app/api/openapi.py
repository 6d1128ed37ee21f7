"""The OpenAPI document, made from what each handler says of itself."""

import inspect
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from http import HTTPStatus
from typing import Any, Final

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.settings import patched_settings
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiRequest, OpenApiResponse
from pydantic import BaseModel, ConfigDict

from schema import views
from schema.problems import Problem, Throttled
from sessions_app.api import answers, bodies, examples, problems
from sessions_app.api.operation import Operation, operation_of

_SETTINGS: Final = {
    "TITLE": "Holdfast",
    "VERSION": "1",
    "DESCRIPTION": (
        "Sessions with language models that survive anything that can happen to a process. A prompt that was "
        "answered with 200 or 201 is never lost; nothing that may already have happened is silently done "
        "again. docs/api.md tells how a client is written."
    ),
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_PATCH": False,
    "POSTPROCESSING_HOOKS": [],
}
_ALWAYS: Final = (
    problems.NotAuthenticated,
    problems.MethodNotAllowed,
    problems.NotAcceptable,
    Throttled,
)
_WITH_QUERY: Final = (problems.InvalidFields,)
_WITH_BODY: Final = (
    problems.InvalidFields,
    problems.Malformed,
    problems.BodyTooLarge,
    problems.UnsupportedMediaType,
)

Kinds = list[type[Problem]]


class Document(BaseModel):
    """An OpenAPI document."""

    model_config = ConfigDict(extra="allow")

    openapi: str


class Described(AutoSchema):
    """Asks the handler's Operation instead of guessing from serializers."""

    @property
    def _operation(self) -> Operation:
        return operation_of(getattr(self.view, self.method.lower()))

    def get_summary(self) -> str:
        return self._operation.summary

    def get_description(self) -> str:  # type: ignore[override]  # the base of the base takes more
        return self._operation.description

    def get_tags(self) -> list[str]:
        return [self.path.removeprefix("/api/v1/").split("/", 1)[0]]

    def get_operation_id(self) -> str:
        return f"{self.method.lower()}_{type(self.view).__name__}"

    def get_override_parameters(self) -> list[Any]:
        wanted = self._operation
        return [
            *(_in_the_path(name) for name in _names(self.path)),
            *_in_the_query(wanted.query),
            *(
                OpenApiParameter(name, type=str, location=OpenApiParameter.HEADER, description=meaning)
                for name, meaning in wanted.headers.items()
            ),
        ]

    def get_request_serializer(self) -> Any:
        body = self._operation.body
        return None if body is None else {answers.JSON: OpenApiRequest(body, examples=_examples(body))}

    def get_response_serializers(self) -> Any:
        wanted = self._operation
        given = {
            (status, answers.JSON): self._given(status, model) for status, model in wanted.answers.items()
        }
        files = {(200, kind): self._given(200, model or str) for kind, model in wanted.files.items()}
        refused = {
            (status, problems.CONTENT_TYPE): self._refused(status, kinds)
            for status, kinds in sorted(self._refusals().items())
        }
        return given | files | refused

    def _given(self, status: int, model: Any) -> OpenApiResponse:
        return OpenApiResponse(model, description=HTTPStatus(status).phrase, examples=_examples(model))

    def _refused(self, status: int, kinds: Kinds) -> OpenApiResponse:
        """A problem document whose code is one of these."""
        problem: Any = views.Problem
        whole = self.resolve_serializer(problem, "response").ref
        codes = {"properties": {"code": {"enum": sorted({kind.code for kind in kinds})}}}
        told = "\n".join(f"- `{kind.code}`: {kind.__doc__ or kind.title}" for kind in kinds)
        return OpenApiResponse(
            {"allOf": [whole, codes]},
            description=f"{HTTPStatus(status).phrase}\n\n{told}",
            examples=[OpenApiExample(kind.code, value=_example_of(kind)) for kind in kinds],
        )

    def _refusals(self) -> dict[int, Kinds]:
        """What may be refused, by status; each code once."""
        found: dict[int, dict[str, type[Problem]]] = defaultdict(dict)
        for kind in self._kinds():
            found[kind.status].setdefault(kind.code, kind)
        return {status: list(kinds.values()) for status, kinds in found.items()}

    def _kinds(self) -> Iterator[type[Problem]]:
        wanted = self._operation
        yield from _ALWAYS
        yield from _WITH_QUERY
        yield from getattr(self.view, "missing", ())
        yield from wanted.refusals
        if "cursor" in wanted.query.model_fields:
            yield problems.InvalidCursor
        if wanted.body is not None:
            yield from _WITH_BODY
        if self.method != "GET":
            yield problems.Forbidden
        if _names(self.path):
            yield problems.RouteNotFound


def _names(path: str) -> list[str]:
    return [piece[1:-1] for piece in path.split("/") if piece.startswith("{")]


def _in_the_path(name: str) -> OpenApiParameter:
    prefix = examples.IDS[name][:3]
    return OpenApiParameter(
        name,
        type={"type": "string", "pattern": f"^{prefix}_[A-Za-z0-9-]{{8,64}}$"},
        location=OpenApiParameter.PATH,
        examples=[OpenApiExample("example", value=examples.IDS[name])],
    )


def _in_the_query(query: type[bodies.Query]) -> Iterator[OpenApiParameter]:
    for name, described in query.model_json_schema().get("properties", {}).items():
        # Absence is what null stands for: a query has no null.
        choices = [each for each in described.pop("anyOf", []) if each != {"type": "null"}]
        described.pop("title", None)
        default, meaning = described.pop("default", None), described.pop("description", "")
        kind = described | (choices[0] if choices else {})
        yield OpenApiParameter(name, type=kind, description=meaning, default=default)


def _examples(model: Any) -> list[OpenApiExample]:
    return [OpenApiExample(name, value=value) for name, value in examples.of(model).items()]


def _example_of(kind: type[Problem]) -> dict[str, Any]:
    wanted: Iterable[str] = list(inspect.signature(kind).parameters)
    problem: Problem = kind(**{name: examples.GIVEN[name] for name in wanted})
    return problems.document(problem)


class _Token(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "sessions_app.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "Token, a space, and a token of manage.py create_api_token.",
        }


class _WebSession(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "sessions_app.api.authentication.WebSession"
    name = "web-session"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}


@cache
def document() -> dict[str, Any]:
    """The same for everybody, so it is made once."""
    with patched_settings(_SETTINGS):
        generator: Any = SchemaGenerator
        made: dict[str, Any] = generator().get_schema(request=None, public=True)
    return made
