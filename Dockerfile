# For people with Docker; without it, `make image` makes the same image. See docs/install.md.
#
#   docker build -t starling:dev --build-arg VERSION=v0.1.0 .
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETARCH
ARG VERSION=
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 GOOS=linux GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
    -ldflags "-s -w ${VERSION:+-X main.version=$VERSION}" -o /starling ./cmd/starling

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /starling /usr/local/bin/starling
USER 65532:65532
EXPOSE 9115 9443
ENTRYPOINT ["/usr/local/bin/starling"]
