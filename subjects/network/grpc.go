package network

import (
	"strconv"
	"strings"
)

// grpcStatuses are the names of the status codes of gRPC, by code.
var grpcStatuses = [...]string{
	"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
	"FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
}

const grpcStatus = "grpc-status"

// GRPCStatus returns the status of a call of gRPC, which comes in a trailer, or in
// a header of an answer without a body; 0 for a call that went well, and for what is
// none or has not ended.
func (r *Request) GRPCStatus() uint32 {
	if r.Response == nil {
		return 0
	}
	code, ok := "", false
	if r.End != nil {
		code, ok = valueOf(r.End.Trailers, grpcStatus)
	}
	if !ok {
		code, _ = valueOf(r.Response.Value.Headers, grpcStatus)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(code), 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// StatusText returns what stands beside the status of a response. A call of gRPC
// that failed has the status 200 on the wire, whose text would read as success, so
// the text is the call's own status then, as "grpc-status 5 NOT_FOUND".
func (r *Request) StatusText() string {
	n := r.GRPCStatus()
	switch {
	case r.Response == nil:
		return ""
	case n == 0:
		return r.Response.Value.StatusText
	case n < uint32(len(grpcStatuses)):
		return grpcStatus + " " + strconv.FormatUint(uint64(n), 10) + " " + grpcStatuses[n]
	}
	return grpcStatus + " " + strconv.FormatUint(uint64(n), 10)
}

// valueOf returns the first value of a header, whatever case its name is in.
func valueOf(list []Header, name string) (string, bool) {
	for _, line := range list {
		if strings.EqualFold(line[0], name) {
			return line[1], true
		}
	}
	return "", false
}
