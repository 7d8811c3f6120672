"""Other frameworks' messages and tools: one module a framework, to be imported by itself.

    from toolbatch.integrations import langchain, langgraph, mcp, openai_agents, pydantic_ai

`import toolbatch.integrations` loads no SDK. `langchain` loads LangChain where it is used; each of the others loads its SDK, and needs
the extra of its name (`[langchain]` for both of LangChain's).
"""

__all__: list[str] = []
