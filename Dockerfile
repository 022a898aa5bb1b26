# Two images from one wheel: `docker build .` makes the server's, `docker build --target agent .` the
# agent's. The job's own image needs neither.
ARG BASE=python:3.11-slim

FROM ${BASE} AS wheel
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY agent agent
COPY server server
COPY web web
COPY migrations migrations
COPY tests/programs tests/programs
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
    && python -m venv /opt/hangwatch

FROM wheel AS agent-packages
RUN /opt/hangwatch/bin/pip install --no-cache-dir /wheels/hangwatch-*.whl

FROM wheel AS server-packages
RUN wheel="$(ls /wheels/hangwatch-*.whl)" \
    && /opt/hangwatch/bin/pip install --no-cache-dir "${wheel}[server]"

FROM ${BASE} AS agent
COPY --from=agent-packages /opt/hangwatch /opt/hangwatch
ENV PATH=/opt/hangwatch/bin:$PATH PYTHONUNBUFFERED=1
# Root: it reads other users' processes. Start it with --pid host --cap-add SYS_PTRACE and the run dir.
ENTRYPOINT ["hangwatch"]
CMD ["agent"]

FROM ${BASE} AS server
COPY --from=server-packages /opt/hangwatch /opt/hangwatch
# The signing key of browser sessions lives in the data folder; incidents live in Postgres.
RUN useradd --system --uid 10042 --no-create-home hangwatch \
    && install --directory --owner=hangwatch --mode=0700 /var/lib/hangwatch
ENV PATH=/opt/hangwatch/bin:$PATH PYTHONUNBUFFERED=1 \
    HANGWATCH_HOST=0.0.0.0 HANGWATCH_DATA_DIR=/var/lib/hangwatch
USER hangwatch
VOLUME /var/lib/hangwatch
EXPOSE 8042
ENTRYPOINT ["hangwatch"]
CMD ["serve"]
