"""What belongs to no session: the user, the models and agents to choose from, and everything else."""

from collections.abc import Mapping
from dataclasses import asdict

from django.http import HttpResponse

from schema import views
from sessions_app import sessions
from sessions_app.api import answers, bodies, openapi, page, problems
from sessions_app.api.endpoint import Endpoint
from sessions_app.api.operation import operation
from sessions_app.providers import registry


class Me(Endpoint):
    @operation("Who asks", answers={200: views.Me})
    def get(self) -> HttpResponse:
        return answers.json(
            {"username": self.request.user.get_username(), "is_staff": self.request.user.is_staff}
        )


class Models(Endpoint):
    @operation("The models that can be chosen", answers={200: views.ModelPage})
    def get(self) -> HttpResponse:
        return answers.json({"results": [asdict(model) for model in registry.available()], "next": None})


class Agents(Endpoint):
    @operation("The agents that can be chosen", answers={200: views.AgentPage})
    def get(self) -> HttpResponse:
        choices = [{"name": agent.name, "model": agent.model} for agent in sessions.agents()]
        return answers.json({"results": choices, "next": None})


class Schema(Endpoint):
    @operation("This document", query=bodies.SchemaQuery, answers={200: openapi.Document})
    def get(self, *, query: bodies.SchemaQuery) -> HttpResponse:
        return answers.json(openapi.document())


class Docs(Endpoint):
    produces = "text/html"

    @operation("This document as a page", files={"text/html; charset=utf-8": None})
    def get(self) -> HttpResponse:
        return HttpResponse(page.page(openapi.document()))


class Nowhere(Endpoint):
    """Every address of the API that is none."""

    schema = None  # type: ignore[assignment]  # what is not there is not described

    def find_resource(self, names: Mapping[str, str]) -> None:
        raise problems.RouteNotFound
