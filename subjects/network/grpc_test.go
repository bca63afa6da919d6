package network

import "testing"

// A call of gRPC that failed does not look like one that went well: beside its
// status 200 is what its trailer says, or the header of an answer without a body.
func TestFailedCallsOfGRPCSaySo(t *testing.T) {
	lines := func(code string) []Header {
		if code == "" {
			return nil
		}
		return []Header{{"Content-Type", "application/grpc"}, {"Grpc-Status", code}}
	}
	for _, x := range []struct {
		header, trailer string
		code            uint32
		want            string
	}{
		{"", "", 0, "OK"}, {"", "0", 0, "OK"}, {"", "5", 5, "grpc-status 5 NOT_FOUND"}, {"16", "", 16, "grpc-status 16 UNAUTHENTICATED"}, {"5", "0", 0, "OK"},
		{"", "99", 99, "grpc-status 99"}, {"", "five", 0, "OK"}, {"", "-1", 0, "OK"}, {"", "99999999999", 0, "OK"},
	} {
		r := &Request{Response: &Timed[Response]{Value: Response{Status: 200, StatusText: "OK", Headers: lines(x.header)}}}
		before := r.StatusText()
		r.End = &End{Trailers: lines(x.trailer)}
		if got := r.StatusText(); got != x.want || r.GRPCStatus() != x.code {
			t.Errorf("%q %q: %q, %d", x.header, x.trailer, got, r.GRPCStatus())
		}
		if x.header == "" && before != "OK" {
			t.Errorf("before the end: %q", before)
		}
	}
	if r := (&Request{}); r.StatusText() != "" || r.GRPCStatus() != 0 {
		t.Errorf("without an answer: %q", r.StatusText())
	}
}
