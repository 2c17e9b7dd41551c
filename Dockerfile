# Two stages: the first installs the locked application and compiles it, the second gets that and nothing else.
# EXTRAS: flower, model, traces, as in requirements/. In production pin the base by its digest.
ARG BASE=python:3.13-slim-trixie

FROM ${BASE} AS build
ARG EXTRAS="flower"
ARG SOURCE_DATE_EPOCH=0
WORKDIR /app
COPY requirements /requirements
COPY deploy/install.sh /install.sh
RUN /install.sh /requirements /app/.venv ${EXTRAS}
COPY foreword foreword
COPY loaders loaders
COPY prompts prompts
COPY tasks tasks
COPY worker worker
RUN python -m compileall -q -j 0 --invalidation-mode unchecked-hash foreword loaders prompts tasks worker \
    && chmod -R a+rX,go-w /app

FROM ${BASE}
ARG VERSION=0 REVISION=unknown
LABEL org.opencontainers.image.title="foreword" \
      org.opencontainers.image.description="Prepares what a chat agent must know before the first message" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
RUN useradd --system --uid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin foreword \
    && python -m pip uninstall --quiet --yes --root-user-action ignore pip \
    && rm -rf /usr/local/lib/python3*/ensurepip
WORKDIR /app
COPY --from=build /app /app
USER 10001:10001
# Compiled above; nothing is written but below /tmp.
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 FOREWORD_DATA_DIR=/tmp/foreword
# The processes differ in what health means: docker-compose.yml says it of each.
HEALTHCHECK NONE
ENTRYPOINT ["/app/.venv/bin/python", "-m", "worker"]
CMD ["--help"]
