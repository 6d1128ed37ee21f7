"""The paths of the pages."""

from django.urls import path

from sessions_app.web import account, pages

app_name = "web"

urlpatterns = [
    path("", pages.home, name="home"),
    path("s/<str:session_id>", pages.chat, name="chat"),
    path("s/<str:session_id>/prompts", pages.send, name="send"),
    path("sign-in", account.sign_in, name="sign-in"),
    path("sign-out", account.sign_out, name="sign-out"),
    path("first-run/<str:token>", account.first_account, name="first-run"),
]
