import pytest

from sessions_app import sessions
from sessions_app.models import SessionNote
from sessions_app.tools.builtin import notebook as module
from sessions_app.tools.builtin.notebook import notebook
from sessions_app.tools.enter import Entered, Failed, Succeeded
from sessions_app.tools.port import BadArguments
from tests.support import world
from tests.tools.calls import call, in_database

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


@pytest.fixture
def session_id() -> str:
    return world.session()


def content(entered: Entered) -> str:
    assert isinstance(entered, Succeeded), entered
    assert isinstance(entered.output.content, str)
    return entered.output.content


async def test_what_was_written_is_read_again(session_id: str) -> None:
    await call(notebook, session_id=session_id, action="write", name="plan", text="first\nsecond ä")

    assert (
        content(await call(notebook, session_id=session_id, action="read", name="plan")) == "first\nsecond ä"
    )


async def test_writing_twice_leaves_what_writing_once_left(session_id: str) -> None:
    for _ in range(2):
        await call(notebook, session_id=session_id, action="write", name="plan", text="a plan")

    assert await in_database(SessionNote.objects.count) == 1
    assert notebook.effect == "idempotent"


async def test_a_later_text_replaces_an_earlier_one_and_an_empty_one_removes_it(session_id: str) -> None:
    await call(notebook, session_id=session_id, action="write", text="old")
    await call(notebook, session_id=session_id, action="write", text="new")
    assert content(await call(notebook, session_id=session_id, action="read")) == "new"

    for _ in range(2):
        assert "removed" in content(await call(notebook, session_id=session_id, action="write", text=""))

    assert not await in_database(SessionNote.objects.exists)


async def test_another_session_sees_nothing(session_id: str) -> None:
    await call(notebook, session_id=session_id, action="write", name="plan", text="mine")
    other = await in_database(world.session)

    entered = await call(notebook, session_id=other, action="read", name="plan")

    assert entered == Failed(
        error="Tool execution failed: There is no note 'plan'. There are none yet.", known=True
    )


async def test_a_note_that_is_not_there_is_told_with_those_that_are(session_id: str) -> None:
    for name in ("b", "a"):
        await call(notebook, session_id=session_id, action="write", name=name, text="x")

    entered = await call(notebook, session_id=session_id, action="read", name="c")

    assert isinstance(entered, Failed)
    assert entered.error.endswith("There is no note 'c'. There are: a, b.")


@pytest.mark.parametrize(
    "arguments",
    [
        {"action": "write", "name": "", "text": "x"},
        {"action": "write", "name": "n" * 101, "text": "x"},
        {"action": "write", "text": "x" * (module.MAX_TEXT_CHARACTERS + 1)},
        {"action": "read", "name": ""},
    ],
)
async def test_what_is_too_long_is_refused_and_nothing_is_written(
    session_id: str, arguments: dict[str, str]
) -> None:
    entered = await call(notebook, session_id=session_id, **arguments)

    assert isinstance(entered, Failed)
    assert entered.known
    assert not await in_database(SessionNote.objects.exists)


def test_an_unknown_action_is_refused_before_anything_is_entered() -> None:
    with pytest.raises(BadArguments, match="action"):
        notebook.normalise({"action": "burn"})


async def test_there_are_only_so_many_notes_and_those_can_still_be_changed(
    session_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_NOTES", 2)
    for name in ("a", "b"):
        await call(notebook, session_id=session_id, action="write", name=name, text="x")

    refused = await call(notebook, session_id=session_id, action="write", name="c", text="x")
    changed = await call(notebook, session_id=session_id, action="write", name="a", text="y")

    assert isinstance(refused, Failed)
    assert isinstance(changed, Succeeded)
    assert await in_database(SessionNote.objects.count) == 2


async def test_a_session_that_is_gone_gets_no_note() -> None:
    entered = await call(notebook, session_id="ses_gone-gone", action="write", text="x")

    assert isinstance(entered, Failed)
    assert not await in_database(SessionNote.objects.exists)


def test_deleting_a_session_removes_its_notes_and_no_others() -> None:
    mine, other = world.session(), world.session()
    for session_id in (mine, other):
        module._write(session_id, "plan", "x")

    sessions.delete(session_id=mine, now=world.NOW)

    assert list(SessionNote.objects.values_list("session_id", flat=True)) == [other]
