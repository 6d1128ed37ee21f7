"""Providers and models in the admin: checked when they are entered, tested by one request."""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from sessions_app.attempts import testing
from sessions_app.models import ChatModel, ModelTest, Provider
from tests.providers.fixtures import DONE, STOP, delta, frame
from tests.support.processes import free_port
from tests.support.stub_process import StubProcess
from tests.support.stub_provider import Script, answer, broken_connection, document

pytestmark = pytest.mark.django_db

ADD_PROVIDER = "/admin/sessions_app/provider/add/"
ADD_MODEL = "/admin/sessions_app/chatmodel/add/"
FORM = {
    "name": "mine",
    "label": "",
    "wire_format": "chat",
    "base_url": "https://host.example/v1/",
    "key_variable": "MY_KEY",
    "enabled": "on",
}


def problems(page: Any) -> dict[str, list[str]]:
    assert page.status_code == 200
    errors: dict[str, list[str]] = page.context["adminform"].form.errors
    return errors


def test_a_provider_is_entered_and_its_models_with_it(browser: Client) -> None:
    assert browser.post(ADD_PROVIDER, FORM).status_code == 302
    added = browser.post(
        ADD_MODEL,
        {"provider": "mine", "model": "m", "enabled": "on", "input_price": "2", "output_price": "8"},
    )

    assert added.status_code == 302
    assert Provider.objects.get().base_url == "https://host.example/v1"
    model = ChatModel.objects.get()
    assert (str(model), model.output_price) == ("mine:m", Decimal(8))
    names = [each["name"] for each in browser.get("/api/v1/models").json()["results"]]
    assert "mine:m" in names


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "openai"),
        ("name", "demo"),
        ("name", "Mine"),
        ("name", "a:b"),
        ("base_url", "ftp://host"),
        ("base_url", "https://user:pw@host/v1"),
        ("base_url", "https://host/v1?key=x"),
        ("key_variable", "SECRET_KEY"),
        ("key_variable", "sk-the-key-itself"),
        ("key_variable", "MY KEY"),
    ],
)
def test_what_could_not_work_is_refused_at_its_field(browser: Client, field: str, value: str) -> None:
    assert list(problems(browser.post(ADD_PROVIDER, FORM | {field: value}))) == [field]
    assert not Provider.objects.exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"provider": "nobody"},
        {"model": " "},
        {"silence_seconds": "0"},
        {"max_output_tokens": "0"},
        {"input_price": "1"},
        {"input_price": "-1", "output_price": "1"},
    ],
)
def test_a_model_that_means_nothing_is_refused(browser: Client, fields: dict[str, str]) -> None:
    assert problems(browser.post(ADD_MODEL, {"provider": "openai", "model": "m"} | fields))


def test_the_models_of_a_provider_go_with_it(browser: Client) -> None:
    browser.post(ADD_PROVIDER, FORM)
    for provider in ("mine", "openai"):
        ChatModel.objects.create(provider=provider, model="m")

    browser.post("/admin/sessions_app/provider/mine/delete/", {"post": "yes"})

    assert [str(model) for model in ChatModel.objects.all()] == ["openai:m"]


def test_the_list_says_whether_the_key_is_set_and_never_the_key(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser.post(ADD_PROVIDER, FORM)
    unset = browser.get("/admin/sessions_app/provider/").content.decode()
    monkeypatch.setenv("MY_KEY", "sk-secret-value")
    page = browser.get("/admin/sessions_app/provider/").content.decode()

    assert "MY_KEY: not set" in unset
    assert "MY_KEY: set" in page
    assert "sk-secret-value" not in page + browser.get(ADD_PROVIDER).content.decode()


# Test this model


@pytest.fixture
def stub() -> Iterator[StubProcess]:
    with StubProcess.running(free_port()) as stub:
        yield stub


@pytest.fixture
def model(stub: StubProcess) -> ChatModel:
    Provider.objects.create(name="mine", wire_format="chat", base_url=f"{stub.url}/v1")
    return ChatModel.objects.create(
        provider="mine", model="m", input_price=Decimal(2), output_price=Decimal(8)
    )


def press(browser: Client, model: ChatModel) -> Any:
    return browser.post(f"/admin/sessions_app/chatmodel/{model.pk}/test/", follow=True)


USAGE = frame({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 100}})


def test_one_tiny_request_shows_what_came_back(browser: Client, model: ChatModel, stub: StubProcess) -> None:
    stub.script(answer(delta(reasoning="hm"), delta(content="<b>OK</b>"), STOP, USAGE, DONE))

    assert b"Test this model" in browser.get(f"/admin/sessions_app/chatmodel/{model.pk}/change/").content
    page = press(browser, model).content.decode()

    (sent,) = stub.journal()
    test = ModelTest.objects.get()
    assert sent.headers["x-client-request-id"] == test.pk
    assert sent.json()["max_tokens"] == testing.MAX_OUTPUT_TOKENS
    assert (test.outcome, test.finish, test.text, test.reasoning) == ("completed", "stop", "<b>OK</b>", "hm")
    assert test.usage == {"input_tokens": 1000, "output_tokens": 100, "cost": 0.0028}
    assert test.by == "root"
    facts = [test.prepared_at, test.dispatched_at, test.headers_at, test.first_output_at, test.ended_at]
    assert facts == sorted(facts)  # type: ignore[type-var]
    for shown in (
        "Tested mine:m: it answered",
        "completed",
        "0.0028",
        "first output",
        "&lt;b&gt;OK&lt;/b&gt;",
    ):
        assert shown in page
    assert "<b>OK" not in page


@pytest.mark.parametrize(
    ("script", "outcome", "billed"),
    [
        (document({"error": {"message": "no such key"}}, status=401), "rejected", False),
        (answer(delta(content="O")), "partial", True),
        (broken_connection("close"), "ambiguous", True),
        (answer(STOP, DONE), "failed", True),
    ],
)
def test_a_test_that_fails_shows_its_class_and_is_not_repeated(
    browser: Client, model: ChatModel, stub: StubProcess, script: Script, outcome: str, billed: bool
) -> None:
    stub.script(script)

    page = press(browser, model).content.decode()

    assert len(stub.journal()) == ModelTest.objects.count() == 1
    assert ModelTest.objects.get().outcome == outcome
    assert f"no whole answer ({outcome})" in page
    state = testing.state_of(ModelTest.objects.get(), now=timezone.now())
    assert testing.may_be_billed(state) == billed


def test_a_test_that_takes_too_long_is_ended_and_unknown(
    browser: Client, model: ChatModel, stub: StubProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(testing, "LONGEST_SECONDS", 0.3)
    stub.script(broken_connection("hold"))

    press(browser, model)

    test = ModelTest.objects.get()
    assert (test.outcome, (test.error or {})["reason"]) == ("ambiguous", "timeout")


def test_a_model_without_its_key_is_not_asked(browser: Client, model: ChatModel, stub: StubProcess) -> None:
    Provider.objects.update(key_variable="A_KEY_THAT_IS_NOT_SET")

    page = press(browser, model).content.decode()

    assert "Nothing was sent. mine needs a key. Set A_KEY_THAT_IS_NOT_SET" in page
    assert stub.journal() == []
    assert not ModelTest.objects.exists()


def test_only_those_who_may_change_models_make_requests_and_only_on_purpose(
    browser: Client, model: ChatModel, stub: StubProcess
) -> None:
    address = f"/admin/sessions_app/chatmodel/{model.pk}/test/"
    looker = Client()
    staff = User.objects.create_user("staff", is_staff=True)
    staff.user_permissions.add(Permission.objects.get(codename="view_chatmodel"))
    looker.force_login(staff)

    assert looker.post(address).status_code == 403
    assert b"Test this model" not in looker.get(f"/admin/sessions_app/chatmodel/{model.pk}/change/").content
    assert Client().post(address).status_code == 302
    assert browser.get(address).status_code == 405
    assert browser.post("/admin/sessions_app/chatmodel/999/test/").status_code == 404
    guarded = Client(enforce_csrf_checks=True)
    guarded.force_login(User.objects.get(username="root"))
    assert guarded.post(address).status_code == 403
    assert stub.journal() == []


@pytest.mark.parametrize(
    ("dispatched", "age", "state"), [(False, 999, "not_sent"), (True, 999, "unknown"), (True, 1, "running")]
)
def test_a_test_whose_process_died_is_not_said_to_run(dispatched: bool, age: int, state: str) -> None:
    now = timezone.now()
    begun = now - timedelta(seconds=age)
    test = ModelTest(prepared_at=begun, dispatched_at=begun if dispatched else None)

    assert testing.state_of(test, now=now) == state
