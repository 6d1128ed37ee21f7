# One image for web, workers and commands. Built and run by compose.yaml; docs/operations.md tells the rest.

ARG PYTHON_VERSION=3.11
ARG NODE_VERSION=24

FROM node:${NODE_VERSION}-bookworm-slim AS assets
WORKDIR /assets
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --no-audit --no-fund \
    && mkdir vendor \
    && cp node_modules/marked/lib/marked.esm.js vendor/marked.js \
    && cp node_modules/dompurify/dist/purify.es.mjs vendor/purify.js \
    && cp node_modules/@highlightjs/cdn-assets/es/highlight.min.js vendor/highlight.js

FROM python:${PYTHON_VERSION}-slim-bookworm AS packages
COPY requirements.txt constraints.txt /tmp/
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --requirement /tmp/requirements.txt --constraint /tmp/constraints.txt

FROM python:${PYTHON_VERSION}-slim-bookworm
ENV PATH=/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    LOG_FORMAT=json \
    DATABASE_URL=sqlite:////var/lib/holdfast/holdfast.sqlite3 \
    HOLDFAST_RUN_DIR=/var/lib/holdfast/run
RUN useradd --uid 10001 --home-dir /var/lib/holdfast --create-home --shell /usr/sbin/nologin holdfast \
    && install --directory --owner=holdfast --mode=0700 /var/lib/holdfast/run
COPY --from=packages /venv /venv
WORKDIR /app
COPY manage.py ./
COPY schema schema
COPY sessions_app sessions_app
COPY recovery recovery
COPY config config
COPY templates templates
COPY --from=assets /assets/vendor sessions_app/static/holdfast/vendor
USER 10001
VOLUME /var/lib/holdfast
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --start-period=30s --interval=10s --timeout=5s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
CMD ["python", "manage.py", "up", "--host", "0.0.0.0"]
