"""The examples for frameworks: what each says it shows, it shows."""

import json

from langchain_core.messages import ToolMessage
from langgraph.prebuilt.chat_agent_executor import _validate_chat_history
from pydantic_ai.messages import ToolReturnPart, repair_messages

from examples import langgraph_agent, pydantic_ai_agent
from tests.batch.clock import turned


@turned
async def test_langgraph_agent() -> None:
    """Four calls, four answers, in order; the history is lawful."""
    messages = await langgraph_agent.main()
    _validate_chat_history(messages)
    answers = [message for message in messages if isinstance(message, ToolMessage)]
    assert [message.status for message in answers] == ["success", "error", "error", "error"]
    codes = [json.loads(str(message.content))["error"]["code"] for message in answers[1:]]
    assert codes == ["tool_error", "timeout", "malformed_arguments"]


@turned
async def test_pydantic_ai_agent() -> None:
    """Two calls with one id both have their answer, and failures end nothing; the history needs no repair."""
    messages = await pydantic_ai_agent.main()
    assert repair_messages(messages) == messages
    answers = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    assert [part.outcome for part in answers] == ["success", "success", "failed", "failed"]
    assert [part.content for part in answers[:2]] == [{"celsius": 18}, {"celsius": 21}]
