"""The request log and the Prometheus metrics. Neither contains prompts or generated text."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clearhead.api.openai import Usage
from clearhead.server.model_registry import ModelRegistry


class ServerMetrics:
    """Counters of requests and tokens."""

    def __init__(self, registry: ModelRegistry) -> None:
        self.collectors = CollectorRegistry()
        self.requests = Counter(
            "clearhead_requests",
            "Completed requests.",
            ["method", "route", "status"],
            registry=self.collectors,
        )
        self.seconds = Histogram(
            "clearhead_request_seconds",
            "Time until the response was sent.",
            ["route"],
            registry=self.collectors,
        )
        self.tokens = Counter(
            "clearhead_tokens", "Prompt and generated tokens.", ["kind"], registry=self.collectors
        )
        self.collectors.register(EngineCollector(registry))

    def record_usage(self, request: Request, model: str, usage: Usage) -> None:
        """Count the tokens of a request, and add the counts to its log entry."""
        self.tokens.labels("prompt").inc(usage.prompt_tokens)
        self.tokens.labels("completion").inc(usage.completion_tokens)
        counts = f"{usage.prompt_tokens} prompt {usage.completion_tokens} completion tokens"
        request.state.log_details = f" {model} {counts}"

    def render(self) -> bytes:
        """Return the metrics in the Prometheus text format."""
        return generate_latest(self.collectors)


class EngineCollector(Collector):
    """The current load of each model's engine, read when the metrics are scraped."""

    def __init__(self, registry: ModelRegistry) -> None:
        self.registry = registry

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for name, description in (
            ("waiting", "Requests waiting for a slot."),
            ("running", "Sequences being generated."),
        ):
            gauge = GaugeMetricFamily(f"clearhead_{name}", description, labels=["model"])
            for served in self.registry:
                if served.engine is not None:
                    gauge.add_metric([served.name], getattr(served.engine, name))
            yield gauge


class RequestLogMiddleware:
    """Log and count every request, including rejected ones."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics, log: Callable[[str], object]) -> None:
        self.app, self.metrics, self.log = app, metrics, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, send_and_note)
        finally:
            seconds = time.perf_counter() - start
            # The route's pattern, not the path: the path is whatever the client sent.
            route = getattr(scope.get("route"), "path", "-")
            method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "OPTIONS") else "-"
            self.metrics.requests.labels(method, route, str(status)).inc()
            self.metrics.seconds.labels(route).observe(seconds)
            details = scope.get("state", {}).get("log_details", "")
            now = time.strftime("%Y-%m-%dT%H:%M:%S")
            self.log(f"{now} {method} {route} {status or 'disconnected'} {seconds * 1000:.0f} ms{details}")
