"""Examples of toolbatch. Each file runs by itself: `python examples/plain_asyncio.py`.

This file makes `examples` a package, so that nothing else of that name (`tests/examples`) is imported in its place.
"""
