"""Five visitors, and all that belongs to one of them."""

from dataclasses import dataclass
from typing import Any, Final

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from recovery.models import RecoveryClaim
from sessions_app import access
from sessions_app.models import ApiToken, ToolOverflow
from tests.support import world
from tests.web import conversations

SECRET: Final = "what only Ann may know"
SIGNED_IN: Final = ("owner", "other", "staff", "administrator")
STRANGERS: Final = ("other", "staff", "administrator")
VISITORS: Final = ("anonymous", *SIGNED_IN)
"""The staff has no permission; the administrator has every one, but sessions are their owners' own."""


@dataclass(frozen=True)
class Belongings:
    """Ids of what is Ann's, by the names that addresses have for them."""

    session_id: str
    message_id: str
    attempt_id: str
    call_id: str
    part_id: str
    token_id: int

    def fill(self, text: str) -> str:
        for name, value in vars(self).items():
            text = text.replace(f"{{{name}}}", str(value))
        return text


@dataclass(frozen=True)
class People:
    users: dict[str, User]
    secrets: dict[str, str]

    @classmethod
    def arrive(cls) -> "People":
        users = {
            "owner": User.objects.create_user("ann"),
            "other": User.objects.create_user("bob"),
            "staff": User.objects.create_user("stan", is_staff=True),
            "administrator": User.objects.create_superuser("root"),
        }
        secrets = {
            name: access.create_token(user_id=user.pk, name="tests", now=timezone.now()).secret
            for name, user in users.items()
        }
        return cls(users, secrets)

    def with_token(self, name: str) -> Client:
        """Somebody's program."""
        if name == "anonymous":
            return Client()
        return Client(headers={"Authorization": f"Token {self.secrets[name]}"})

    def with_browser(self, name: str, *, csrf: bool = False) -> Client:
        """Somebody's browser; with ``csrf`` it has a token for its forms and sends it as scripts do."""
        client = Client(enforce_csrf_checks=True)
        if name != "anonymous":
            client.force_login(self.users[name])
        if csrf:
            client.cookies["csrftoken"] = "a" * 32
            client.defaults["HTTP_X_CSRFTOKEN"] = "a" * 32
        return client

    def owner_has(self) -> Belongings:
        """A session with something in every state."""
        owner = self.users["owner"].pk
        talk = conversations.begin(owner, title=SECRET)
        talk.exchange(SECRET, SECRET)
        answer = talk.begin_answer()
        call = talk.begin_call(answer, "send_webhook")
        talk.enter(answer, call, {"text": SECRET})
        talk.fail_call(answer, call, "Tool execution interrupted", unknown=True)
        attempt = talk.lose_attempt(answer)
        talk.fail(answer, outcome="unknown", reason="crash", detail="lost")
        open_part = talk.begin_text(talk.begin_answer(), SECRET)
        ToolOverflow.objects.create(
            pk="ovf_00000000001",
            session_id=talk.session_id,
            created_at=timezone.now(),
            content=SECRET.encode(),
            is_text=True,
        )
        RecoveryClaim.objects.create(
            pk="clm_00000000001",
            session_id=talk.session_id,
            boundary_seq=1,
            lost_fence=1,
            death="proved",
            outcome="held",
            found={"attempts": 1, "tools": 1, "parts": 0},
            created_at=timezone.now(),
        )
        return Belongings(
            session_id=talk.session_id,
            message_id=talk.prompt(SECRET),
            attempt_id=attempt,
            call_id=call,
            part_id=open_part,
            token_id=access.create_token(user_id=owner, name=SECRET, now=timezone.now()).token.pk,
        )


def all_of_it(anns: Belongings) -> Any:
    """What a stranger's visit must not move."""
    return world.everything_of(anns.session_id), world.rows_of(ApiToken, pk=anns.token_id)
