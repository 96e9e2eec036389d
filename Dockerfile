# The image of voxeld: one static binary on nothing. Build it from the sources with
#   docker build --build-arg VERSION=v1 -t voxeld .     (VERSION: what voxeld --version says)
# or around a binary that is built already (make image-prebuilt; no network, no base image):
#   docker build --target prebuilt -t voxeld .
# Legacy builders run every stage above the target, so the stages without a base image come first.

FROM scratch AS base
COPY LICENSE web/public/notices.txt /
USER 65532:65532
ENV VOXELD_DATA_DIR=/data \
    VOXELD_METRICS=0.0.0.0:9102
EXPOSE 4001/tcp 4001/udp 4002/tcp 8080/tcp 9102/tcp
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["/voxeld", "healthcheck"]
ENTRYPOINT ["/voxeld"]
CMD ["run"]

# bin/image holds voxeld and the empty folders data, tmp and token, so that volumes belong to the user above.
FROM base AS prebuilt
COPY --chown=65532:65532 bin/image/ /
VOLUME /data

FROM node:22-bookworm-slim AS client
WORKDIR /src/web
COPY web/package.json web/package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY web/ ./
RUN npm run build

FROM golang:1.26-bookworm AS daemon
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
COPY --from=client /src/web/dist/ web/dist/
COPY --from=client /src/web/node_modules/quickjs-wasi/quickjs.wasm script/engine/
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X main.buildVersion=$VERSION" -o /out/voxeld ./cmd/voxeld && mkdir /out/data /out/tmp /out/token

FROM base AS voxeld
COPY --from=daemon --chown=65532:65532 /out/ /
VOLUME /data
