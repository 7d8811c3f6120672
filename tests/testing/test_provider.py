"""The fake provider as a server: its script, its record, its refusals that no lane owns, its end."""

import ast
import asyncio
import json
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import anthropic
import httpx
import openai
import pytest
from blockbuster import blockbuster_ctx
from openai.types.chat import ChatCompletionMessageParam

import toolbatch.testing
from tests.testing.transcripts import USER, Json
from toolbatch.testing import FakeProvider, RecordedRequest, Reply, ScriptedCall

CHAT: Json = {"model": "m", "messages": [USER]}
QUESTION: ChatCompletionMessageParam = {"role": "user", "content": "Hi."}
OPENAI_KEY = {"authorization": "Bearer test"}
ANTHROPIC_KEY = {"x-api-key": "test", "anthropic-version": "2023-06-01"}


def post(provider: FakeProvider, body: Json, path: str = "/v1/chat/completions") -> httpx.Response:
    return httpx.post(provider.url + path, json=body, headers=OPENAI_KEY)


# --- the script


def test_a_script_that_has_ended_says_so() -> None:
    with FakeProvider([Reply("ok")]) as provider:
        assert post(provider, CHAT).status_code == 200
        ended = post(provider, CHAT)
    assert ended.status_code == 500
    assert ended.json()["error"]["type"] == "server_error"
    assert "script has ended: all 1 replies were given" in ended.json()["error"]["message"]
    assert [request.status for request in provider.requests] == [200, 500]
    assert provider.rejected == []  # it was not the client's fault


def test_an_ended_script_is_an_api_error_to_anthropic() -> None:
    with FakeProvider() as provider:
        client = anthropic.Anthropic(base_url=provider.anthropic_base_url, api_key="test", max_retries=0)
        with client, pytest.raises(anthropic.InternalServerError, match="script has ended") as failure:
            client.messages.create(model="m", max_tokens=8, messages=[{"role": "user", "content": "Hi."}])
    assert failure.value.type == "api_error"


def test_a_function_sees_the_request_and_makes_the_reply() -> None:
    def echo(request: RecordedRequest) -> Reply:
        return Reply(f"{request.path} {request.body['messages'][-1]['content']}")

    with FakeProvider(echo) as provider:
        answer = post(provider, CHAT).json()
        assert provider.remaining is None
    assert answer["choices"][0]["message"]["content"] == "/v1/chat/completions Hi."


def test_a_function_is_not_asked_about_refused_requests() -> None:
    asked: list[RecordedRequest] = []

    def script(request: RecordedRequest) -> Reply:
        asked.append(request)
        return Reply("ok")

    with FakeProvider(script) as provider:
        assert post(provider, {"model": "m", "messages": []}).status_code == 400
    assert asked == []
    assert [request.error for request in provider.rejected] == [
        "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead."
    ]


def test_a_function_that_fails_shows_its_exception() -> None:
    def script(request: RecordedRequest) -> Reply:
        raise LookupError("no such scene")

    with FakeProvider(script) as provider:
        failed = post(provider, CHAT)
    assert failed.status_code == 500
    assert "LookupError('no such scene')" in failed.json()["error"]["message"]


async def test_requests_at_the_same_time_get_one_reply_each() -> None:
    async with (
        FakeProvider([Reply(str(number)) for number in range(20)]) as provider,
        openai.AsyncOpenAI(base_url=provider.openai_base_url, api_key="test", max_retries=0) as client,
    ):
        asked = [client.chat.completions.create(model="m", messages=[QUESTION]) for _ in range(20)]
        replies = await asyncio.gather(*asked)
    said = [reply.choices[0].message.content for reply in replies]
    assert sorted(said, key=str) == sorted(map(str, range(20)))
    assert (len(provider.requests), provider.remaining) == (20, 0)


# --- refusals that no lane owns


def test_a_request_without_a_key_is_unauthorized() -> None:
    with FakeProvider([Reply("ok")]) as provider:
        to_openai = httpx.post(f"{provider.url}/v1/responses", json={})
        other = httpx.post(f"{provider.url}/v1/responses", json={}, headers={"authorization": "Basic dA=="})
        to_anthropic = httpx.post(f"{provider.url}/v1/messages", json={})
    assert (to_openai.status_code, other.status_code, to_anthropic.status_code) == (401, 401, 401)
    assert to_openai.json()["error"]["message"].startswith("You didn't provide an API key.")
    assert to_anthropic.json()["error"] == {"type": "authentication_error", "message": "x-api-key header is required"}
    assert [request.status for request in provider.rejected] == [401, 401, 401]


def test_unknown_routes_are_not_found_in_the_shape_of_the_asking_client() -> None:
    with FakeProvider() as provider:
        openai_client = openai.OpenAI(base_url=provider.openai_base_url, api_key="test", max_retries=0)
        with openai_client, pytest.raises(openai.NotFoundError, match=r"Invalid URL \(GET /v1/models\)"):
            openai_client.models.list()
        anthropic_client = anthropic.Anthropic(base_url=provider.anthropic_base_url, api_key="test", max_retries=0)
        with anthropic_client, pytest.raises(anthropic.NotFoundError, match="Not Found"):
            anthropic_client.models.list()
    assert [request.path for request in provider.rejected] == ["/v1/models", "/v1/models"]


def test_a_known_route_with_another_method_is_not_found() -> None:
    with FakeProvider() as provider:
        assert httpx.get(f"{provider.url}/v1/chat/completions", headers=OPENAI_KEY).status_code == 404


LONE = rb'{"model": "m", "max_tokens": 8, "messages": [{"role": "user", "content": "\ud83d"}]}'


def test_bodies_that_are_no_json_are_refused_in_each_providers_words() -> None:
    with FakeProvider([Reply("ok")]) as provider:
        to_openai = httpx.post(f"{provider.url}/v1/chat/completions", content=LONE, headers=OPENAI_KEY)
        to_anthropic = httpx.post(f"{provider.url}/v1/messages", content=LONE, headers=ANTHROPIC_KEY)
        assert provider.remaining == 1
    assert (to_openai.status_code, to_anthropic.status_code) == (400, 400)
    assert to_openai.json()["error"]["message"].startswith("We could not parse the JSON body of your request.")
    assert to_anthropic.json()["error"]["message"] == (
        "The request body is not valid JSON: no low surrogate in string: line 1 column 81 (char 80)"
    )
    assert [request.body for request in provider.rejected] == [{}, {}]


# --- the server's life


def fake_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "toolbatch-fake-provider"]


def test_the_address_is_known_inside_the_block_only() -> None:
    provider = FakeProvider()
    with pytest.raises(RuntimeError, match="no address"):
        _ = provider.url
    with provider:
        assert provider.openai_base_url == f"{provider.url}/v1"
        assert provider.anthropic_base_url == provider.url
    with pytest.raises(RuntimeError, match="no address"):
        _ = provider.openai_base_url


def test_a_provider_runs_once_at_a_time() -> None:
    with FakeProvider() as provider, pytest.raises(RuntimeError, match="running already"):
        provider.__enter__()


def test_nothing_is_left_behind() -> None:
    with FakeProvider([Reply("ok")]) as provider:
        url = provider.url
        assert post(provider, CHAT).status_code == 200
        assert len(fake_threads()) == 1
    assert fake_threads() == []
    with pytest.raises(httpx.ConnectError):
        httpx.get(url)


def test_an_exception_in_the_block_passes_and_ends_the_server() -> None:
    with pytest.raises(LookupError), FakeProvider():
        raise LookupError
    assert fake_threads() == []


async def test_the_asynchronous_form_never_blocks_the_loop() -> None:
    with blockbuster_ctx():
        async with FakeProvider([Reply("ok")]) as provider, httpx.AsyncClient(headers=OPENAI_KEY) as client:
            answer = await client.post(f"{provider.url}/v1/chat/completions", json=CHAT)
    assert answer.status_code == 200
    assert fake_threads() == []


async def test_a_cancelled_entry_or_exit_leaves_no_thread_behind() -> None:
    async def enter_and_leave() -> None:
        async with FakeProvider():
            await asyncio.sleep(0)

    for steps in range(8):  # cancel at every point where it waits
        task = asyncio.ensure_future(enter_and_leave())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    for thread in fake_threads():
        thread.join(5)
    assert fake_threads() == []


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "toolbatch.testing._server", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ImportError) as failure, FakeProvider():
        pass
    assert failure.value.__notes__ == ["The fake provider needs the extra: pip install toolbatch[testing]"]
    assert failure.value.name == "uvicorn"


def test_a_client_that_does_not_read_its_stream_cannot_hold_the_end_up(caplog: pytest.LogCaptureFixture) -> None:
    long = Reply("x" * 20_000_000, [ScriptedCall("call_1", "f")])
    with httpx.Client(headers=OPENAI_KEY) as client, ExitStack() as outlives:
        with FakeProvider([long]) as provider:
            stream = client.stream("POST", f"{provider.url}/v1/chat/completions", json=CHAT | {"stream": True})
            assert outlives.enter_context(stream).status_code == 200
            begun = time.monotonic()
        assert time.monotonic() - begun < 3
        assert fake_threads() == []
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_client_that_does_not_finish_its_request_cannot_hold_the_end_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with FakeProvider([Reply("ok")]) as provider:
        host, port = provider.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = f"POST /v1/messages HTTP/1.1\r\nhost: {host}\r\nx-api-key: t\r\ncontent-length: 100\r\nexpect: 100-continue\r\n\r\n"
        writer.write(head.encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 100")  # it now waits for a body that never comes
    assert await reader.read() in (b"\r\n", b"")
    writer.close()
    assert provider.requests == []
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


# --- its independence


def test_the_judge_shares_no_code_with_what_it_judges() -> None:
    allowed = {"starlette", "uvicorn", *sys.stdlib_module_names}
    for file in Path(toolbatch.testing.__file__).parent.glob("*.py"):
        if file.name.startswith(("_store_", "_spill_", "_journal_", "_backend_")):
            continue  # they check a host's own stores and backends, against the ports
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert name.startswith("toolbatch.testing.") or name.split(".")[0] in allowed, f"{file.name}: {name}"


def test_the_checks_need_no_server_library() -> None:
    program = "import json, sys, toolbatch.testing; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert {"starlette", "uvicorn", "openai", "anthropic"}.isdisjoint(json.loads(done.stdout))
