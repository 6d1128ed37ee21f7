"""manage.py create_api_token and rebuild_projections."""

import io

import pytest
from django.core.management import CommandError, call_command

from sessions_app.models import ApiToken, SessionEvent, SessionInput
from tests.api.callers import Caller
from tests.support import world

pytestmark = [pytest.mark.django_db(transaction=True)]


def run(*arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a command."""
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command(*arguments, stdout=out, stderr=err)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def test_a_token_is_printed_alone_and_lets_its_user_in() -> None:
    world.user("ann")

    code, out, _ = run("create_api_token", "ann", "--name", "laptop")

    (secret,) = out.splitlines()
    assert code == 0
    assert Caller(headers={"Authorization": f"Token {secret}"}).get("/me").json()["username"] == "ann"
    assert ApiToken.objects.get().name == "laptop"


def test_a_token_for_nobody_is_refused_in_words() -> None:
    with pytest.raises(CommandError, match="no active user 'nobody'"):
        run("create_api_token", "nobody")

    assert not ApiToken.objects.exists()


@pytest.mark.both_databases
def test_a_check_of_right_tables_finds_nothing() -> None:
    world.owned()

    code, out, _ = run("rebuild_projections", "--check")

    assert code == 0
    assert out == "1 sessions, 0 differ from their logs, 0 could not be replayed.\n"


@pytest.mark.both_databases
@pytest.mark.rows_of_its_own
def test_a_check_names_what_differs_and_changes_nothing() -> None:
    session_id, other = world.session(), world.session()
    message = world.prompt(session_id)
    SessionInput.objects.filter(pk=message).update(text="forged")
    before = world.everything_of(session_id)

    code, out, _ = run("rebuild_projections", "--check")

    assert code == 1
    assert session_id in out
    assert "forged" in out
    assert other not in out
    assert world.everything_of(session_id) == before


@pytest.mark.both_databases
def test_a_rebuild_brings_back_what_the_log_says() -> None:
    session_id, other = world.session(), world.session()
    message = world.prompt(session_id)
    right = world.everything_of(session_id)
    SessionInput.objects.filter(pk=message).update(text="forged")

    assert run("rebuild_projections", "--session", other)[0] == 0
    assert world.everything_of(session_id) != right
    assert run("rebuild_projections", "--session", session_id)[0] == 0

    assert world.everything_of(session_id) == right


@pytest.mark.rows_of_its_own
def test_a_log_that_cannot_be_replayed_is_named_and_the_others_are_done() -> None:
    broken, other = world.session(), world.session()
    SessionEvent.objects.filter(session_id=broken).update(type="nobody.knows")
    message = world.prompt(other)
    SessionInput.objects.filter(pk=message).update(text="forged")

    code, _, err = run("rebuild_projections")

    assert code == 1
    assert broken in err
    assert SessionInput.objects.get(pk=message).text == "Hello"


def test_an_unknown_session_is_refused_in_words() -> None:
    with pytest.raises(CommandError, match="no session 'ses_unknown'"):
        run("rebuild_projections", "--session", "ses_unknown")
