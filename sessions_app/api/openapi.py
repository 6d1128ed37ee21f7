"""The OpenAPI document, made from what each handler says of itself."""

from functools import cache
from http import HTTPStatus
from typing import Any, Final

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.settings import patched_settings
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from pydantic import BaseModel, Field

from schema.attempts import Decision
from sessions_app.api import answers
from sessions_app.api.operation import Operation, operation_of

_TITLE: Final = "Holdfast"
_ANY_OBJECT: Final = {"type": "object", "additionalProperties": True}
_ALWAYS: Final = (400, 401, 404, 405, 406)
_WITH_BODY: Final = (403, 413, 415)


class Problem(BaseModel):
    """An error (RFC 9457). ``code`` is stable; ``errors`` names the fields that cannot be used, ``decision`` is
    the one that was made before."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: dict[str, list[str]] = Field(default_factory=dict)
    decision: Decision | None = None


class Described(AutoSchema):
    """Asks the handler's Operation instead of guessing from serializers."""

    @property
    def _operation(self) -> Operation:
        return operation_of(getattr(self.view, self.method.lower()))

    def get_summary(self) -> str:
        return self._operation.summary

    def get_description(self) -> str:  # type: ignore[override]  # the base of the base takes more
        return ""

    def get_tags(self) -> list[str]:
        return [self.path.removeprefix("/api/v1/").split("/", 1)[0]]

    def get_operation_id(self) -> str:
        return f"{self.method.lower()}_{type(self.view).__name__}"

    def get_override_parameters(self) -> list[Any]:
        query = self._operation.query.model_json_schema()
        return [
            OpenApiParameter(name, type=described, default=described.get("default"))
            for name, described in query.get("properties", {}).items()
        ]

    def get_request_serializer(self) -> Any:
        return self._operation.body

    def get_response_serializers(self) -> Any:
        produces = getattr(self.view, "produces", answers.JSON)
        given = {
            (status, produces): OpenApiResponse(_shape(status, model), description=HTTPStatus(status).phrase)
            for status, model in self._operation.answers.items()
        }
        refused = {
            (status, "application/problem+json"): OpenApiResponse(
                Problem, description=HTTPStatus(status).phrase
            )
            for status in self._refusals()
        }
        return given | refused

    def _refusals(self) -> list[int]:
        wanted = self._operation
        with_body = _WITH_BODY if self.method != "GET" else ()
        return sorted({*_ALWAYS, *with_body, *wanted.refusals})


def _shape(status: int, model: type[BaseModel] | None) -> Any:
    if status == HTTPStatus.NO_CONTENT:
        return None
    return model or _ANY_OBJECT


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
    name = "web session"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}


@cache
def document() -> dict[str, Any]:
    """The same for everybody, so it is made once."""
    with patched_settings({"TITLE": _TITLE, "VERSION": "1", "SCHEMA_PATH_PREFIX": "/api/v1"}):
        generator: Any = SchemaGenerator
        made: dict[str, Any] = generator().get_schema(request=None, public=True)
    return made
