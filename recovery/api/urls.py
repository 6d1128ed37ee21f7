"""The addresses of recovery, below /api/v1/; mounted before the core's, which answer for all others."""

from django.urls import path

from recovery.api import asking, claims, deciding

urlpatterns = [
    path("recovery/claims", claims.Claims.as_view()),
    path("attempts/<str:attempt_id>/decide", deciding.DecideAttempt.as_view()),
    path("attempts/<str:attempt_id>/reconcile", asking.AskAboutAttempt.as_view()),
    path("tool-calls/<str:call_id>/reconcile", asking.AskAboutCall.as_view()),
    path("tool-calls/<str:call_id>/decide", deciding.DecideCall.as_view()),
]
