# A server with dq from the output of `make release`, for both processor architectures:
#
#   docker buildx build -f tools/docker/release.Dockerfile --platform linux/amd64,linux/arm64 -t dq target/release-build/staged
#
# The entrypoint of valkey-bundle loads all of /usr/lib/valkey/*.so, that of Redis 8 all of /usr/local/lib/redis/modules:
#
#   ... --build-arg SERVER=redis:8 --build-arg FOLDER=/usr/local/lib/redis/modules
#   ... --build-arg SERVER=redis:8-alpine --build-arg FOLDER=/usr/local/lib/redis/modules --build-arg LIBC=musl
#
# Other images load nothing by themselves: run them with `--loadmodule FOLDER/libdq.so`.
#
# --target one: nothing but the one file, which has a server in it, on port 6379 with its data in /data. Others reach it once
# /data/dq.conf says `bind *` and `requirepass`:
#
#   docker buildx build -f tools/docker/release.Dockerfile --target one -t dq-one target/release-files
ARG SERVER=valkey/valkey-bundle:8.1
ARG LIBC=gnu

FROM debian:13-slim AS one
COPY dq-*-linux /tmp/
RUN mv /tmp/dq-*-"$(uname -m)"-linux /usr/local/bin/dq && rm -f /tmp/dq-*-linux && mkdir -m 1777 /data
USER 65532:65532
VOLUME /data
ENV HOME=/data
ENTRYPOINT ["dq"]
CMD ["server", "--dir", "/data"]

FROM scratch AS module-amd64
ARG LIBC
COPY x86_64-unknown-linux-${LIBC}/libdq.so /

FROM scratch AS module-arm64
ARG LIBC
COPY aarch64-unknown-linux-${LIBC}/libdq.so /

# hadolint ignore=DL3006
FROM module-${TARGETARCH} AS module

FROM ${SERVER}
ARG FOLDER=/usr/lib/valkey
COPY --from=module --chmod=755 /libdq.so ${FOLDER}/libdq.so
