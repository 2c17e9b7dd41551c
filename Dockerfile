# Two stages: uv installs the locked application into a virtual environment; the image gets that and the rooms.
FROM python:3.13-slim AS build
WORKDIR /build
COPY requirements/bootstrap.txt requirements/app.txt ./
RUN python -m venv /app/.venv \
    && pip install --no-cache-dir --require-hashes -r bootstrap.txt \
    && VIRTUAL_ENV=/app/.venv uv pip sync --no-cache --require-hashes app.txt

FROM python:3.13-slim
RUN useradd --system --uid 10001 --home-dir /nonexistent --shell /usr/sbin/nologin foreword
WORKDIR /app
COPY --from=build /app/.venv /app/.venv
COPY foreword foreword
COPY loaders loaders
COPY prompts prompts
COPY tasks tasks
COPY worker worker
USER 10001
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
ENTRYPOINT ["/app/.venv/bin/python", "-m", "worker"]
CMD ["--help"]
