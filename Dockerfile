# natscope as an image: one static binary, and a shell for start scripts.
FROM golang:1.26-alpine AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /natscope ./cmd/natscope

FROM alpine:3
RUN adduser -D -u 10001 natscope
COPY --from=build /natscope /usr/local/bin/natscope
USER natscope
ENTRYPOINT ["natscope"]
CMD ["up"]
