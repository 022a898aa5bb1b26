# One wheel, three images: `docker build .` makes the server's, `--target agent` the agent's and
# `--target demo` a training job to try them with. docs/containers.md says what each needs.
ARG BASE=python:3.11-slim

FROM ${BASE} AS tools
RUN python -m venv /build && python -m venv --without-pip /opt/hangwatch

FROM tools AS wheel
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY agent agent
COPY server server
COPY web web
COPY migrations migrations
COPY tests/programs tests/programs
RUN /build/bin/pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM wheel AS agent-packages
RUN /build/bin/pip --python /opt/hangwatch install --no-cache-dir /wheels/hangwatch-*.whl

FROM wheel AS server-packages
ARG EXTRAS=server,oidc,apprise,otel
RUN wheel="$(ls /wheels/hangwatch-*.whl)" \
    && /build/bin/pip --python /opt/hangwatch install --no-cache-dir "${wheel}[${EXTRAS}]"

FROM tools AS demo-packages
# In pip's words, as TORCH= of make. A build for CPUs is enough, and makes the image a fifth as large.
ARG TORCH=torch==2.13.0
RUN /build/bin/pip --python /opt/hangwatch install --no-cache-dir ${TORCH} \
    && /build/bin/pip --python /opt/hangwatch install --no-cache-dir numpy
COPY --from=wheel /wheels /wheels
RUN /build/bin/pip --python /opt/hangwatch install --no-cache-dir /wheels/hangwatch-*.whl

FROM ${BASE} AS demo
COPY --from=demo-packages /opt/hangwatch /opt/hangwatch
COPY tests/programs /programs
RUN groupadd --system --gid 10043 trainer \
    && useradd --system --uid 10043 --gid 10043 --no-create-home --home-dir / trainer \
    && install --directory --mode=1777 /run/hangwatch
ENV PATH=/opt/hangwatch/bin:$PATH PYTHONUNBUFFERED=1 PYTHONPATH=/programs OMP_NUM_THREADS=1 \
    HANGWATCH_RUN_DIR=/run/hangwatch
WORKDIR /programs
USER 10043:10043
ENTRYPOINT ["hangwatch", "run"]

FROM ${BASE} AS agent
COPY --from=agent-packages /opt/hangwatch /opt/hangwatch
RUN install --directory --mode=1777 /run/hangwatch \
    && install --directory --mode=0700 /var/lib/hangwatch-agent
ENV PATH=/opt/hangwatch/bin:$PATH PYTHONUNBUFFERED=1
# Root, since it reads other users' processes: give it the capabilities of docs/schedulers.md alone.
STOPSIGNAL SIGTERM
ENTRYPOINT ["hangwatch"]
CMD ["agent"]

FROM ${BASE} AS server
COPY --from=server-packages /opt/hangwatch /opt/hangwatch
RUN groupadd --system --gid 10042 hangwatch \
    && useradd --system --uid 10042 --gid 10042 --no-create-home --home-dir / hangwatch
ENV PATH=/opt/hangwatch/bin:$PATH PYTHONUNBUFFERED=1 HANGWATCH_HOST=0.0.0.0
# Nothing is written: all state is in Postgres, and the root file system may be read-only.
USER 10042:10042
EXPOSE 8042
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["hangwatch", "ready"]
ENTRYPOINT ["hangwatch"]
CMD ["serve"]
