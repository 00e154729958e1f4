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
ARG SERVER=valkey/valkey-bundle:8.1
ARG LIBC=gnu

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
