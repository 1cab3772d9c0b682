"""Coroutines in a thread of their own, which works where Playwright's event loop runs in this one."""

import asyncio
from concurrent.futures import ThreadPoolExecutor


def run(coroutine):
    """Run a coroutine to its end and return its result."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
