"""The paths of the pages."""

from django.urls import path

from sessions_app.web import account, changing, pages, settings, timeline

app_name = "web"

urlpatterns = [
    path("", pages.home, name="home"),
    path("chats", pages.chats, name="chats"),
    path("s/<str:session_id>", pages.chat, name="chat"),
    path("s/<str:session_id>/prompts", pages.send, name="send"),
    path("s/<str:session_id>/change", changing.change, name="change"),
    path("s/<str:session_id>/resend", changing.resend, name="resend"),
    path("s/<str:session_id>/delete", changing.delete, name="delete"),
    path("s/<str:session_id>/keep", changing.keep, name="keep"),
    path("s/<str:session_id>/resume", changing.resume, name="resume"),
    path("s/<str:session_id>/timeline", timeline.show, name="timeline"),
    path("settings", settings.overview, name="settings"),
    path("settings/looks", settings.looks, name="looks"),
    path("settings/password", settings.password, name="password"),
    path("settings/tokens", settings.create_token, name="create-token"),
    path("settings/tokens/<int:token_id>/revoke", settings.revoke_token, name="revoke-token"),
    path("sign-in", account.sign_in, name="sign-in"),
    path("sign-out", account.sign_out, name="sign-out"),
    path("first-run/<str:token>", account.first_account, name="first-run"),
]
