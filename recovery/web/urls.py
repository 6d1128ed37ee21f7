"""Where the cards of the chat send their forms."""

from django.urls import path

from recovery.web import deciding

app_name = "recovery"

urlpatterns = [
    path("attempts/<str:attempt_id>/decide", deciding.decide_attempt, name="decide-attempt"),
    path("tool-calls/<str:call_id>/decide", deciding.decide_call, name="decide-call"),
]
