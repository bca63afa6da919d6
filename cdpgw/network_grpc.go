package cdpgw

import (
	"strconv"
	"strings"

	"github.com/natscope/natscope/subjects/network"
)

// grpcStatuses are the names of the status codes of gRPC, by code.
var grpcStatuses = [...]string{
	"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
	"FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
}

// statusTextOf is the text beside the status of a response. A call of gRPC that
// failed has the status 200 on the wire, whose text would read as success, so the
// text is the call's own status there, which comes in a trailer, or in a header
// of an answer without a body.
func statusTextOf(r *network.Request) string {
	v := r.Response.Value
	const name = "grpc-status"
	code := headerOf(v.Headers, name)
	if r.End != nil {
		code = or(headerOf(r.End.Trailers, name), code)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(code), 10, 32)
	switch {
	case err != nil || n == 0:
		return v.StatusText
	case n < uint64(len(grpcStatuses)):
		return name + " " + strconv.FormatUint(n, 10) + " " + grpcStatuses[n]
	}
	return name + " " + strconv.FormatUint(n, 10)
}
