# A team server of one project: docs/containers.md. Two builds: the whole of agcd (trains while people label), or
# labelling alone (--build-arg DISTRIBUTION=serve; 279 MB of packages in place of 1.5 GB; a project is trained elsewhere).
ARG PYTHON=3.11
FROM python:${PYTHON}-slim-bookworm AS build
ARG DISTRIBUTION=whole
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY pyproject.toml hatch_build.py README.md LICENSE constraints.txt ./
COPY src src
COPY packaging/serve packaging/serve
RUN python -m venv /opt/agcd
# torch first and alone: the pin in constraints.txt picks the CPU build where the index offers one. Where it offers only
# the build for NVIDIA cards, --build-arg PIP_EXTRA_INDEX_URL=... says where PyTorch's own is.
ARG PIP_EXTRA_INDEX_URL
RUN if [ "$DISTRIBUTION" = whole ]; then /opt/agcd/bin/pip install -c constraints.txt torch; fi
RUN if [ "$DISTRIBUTION" = whole ]; then /opt/agcd/bin/pip install -c constraints.txt .; \
    else /opt/agcd/bin/pip install ./packaging/serve; fi

FROM python:${PYTHON}-slim-bookworm
RUN useradd --uid 10001 --user-group --create-home --shell /usr/sbin/nologin agcd \
    && install -d -o agcd -g agcd /project /cache
COPY --from=build /opt/agcd /opt/agcd
COPY packaging/health.py /opt/agcd/health.py
ENV PATH=/opt/agcd/bin:$PATH AGCD_CACHE=/cache MPLCONFIGDIR=/tmp/matplotlib PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /home/agcd
VOLUME ["/project", "/cache"]
EXPOSE 8765
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["python", "/opt/agcd/health.py"]
ENTRYPOINT ["agcd"]
CMD ["serve", "/project", "--host", "0.0.0.0", "--allow-remote"]
