"""What belongs to no session: the user, the models and agents to choose from, and everything else."""

from collections.abc import Mapping
from dataclasses import asdict

from django.http import HttpResponse
from rest_framework.request import Request

from sessions_app import sessions
from sessions_app.api import answers, bodies, problems
from sessions_app.api.endpoint import Endpoint
from sessions_app.providers import registry


class Me(Endpoint):
    def get(self, request: Request) -> HttpResponse:
        bodies.read_query(request, bodies.NoQuery)
        return answers.json({"username": request.user.get_username(), "is_staff": request.user.is_staff})


class Models(Endpoint):
    def get(self, request: Request) -> HttpResponse:
        bodies.read_query(request, bodies.NoQuery)
        return answers.json({"results": [asdict(model) for model in registry.available()], "next": None})


class Agents(Endpoint):
    def get(self, request: Request) -> HttpResponse:
        bodies.read_query(request, bodies.NoQuery)
        choices = [{"name": agent.name, "model": agent.model} for agent in sessions.agents()]
        return answers.json({"results": choices, "next": None})


class Nowhere(Endpoint):
    """Every address of the API that is none."""

    def find_resource(self, names: Mapping[str, str]) -> None:
        raise problems.RouteNotFound
