package engine

import (
	"testing"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// A call of gRPC has the status 200 however it ended; its trailer makes it one that failed.
func TestFailedCallsOfGRPC(t *testing.T) {
	m := newMemory(t, subjects.Limits{})
	e := newEngine(t, m)
	p := m.open("stock")
	for id, code := range map[network.RequestID]string{"well": "0", "missing": "5"} {
		p.send(subjects.PlaneNet, network.TopicStart, network.Start{ID: id, URL: "http://stock.test/stock.Stock/Find", Method: "POST"})
		p.send(subjects.PlaneNet, network.TopicResponse, network.Response{ID: id, Status: 200, StatusText: "OK"})
		p.send(subjects.PlaneNet, network.TopicEnd, network.End{ID: id, Trailers: []network.Header{{"Grpc-Status", code}}})
	}
	failed := must(t, e.Requests, query.RequestsRequest{Failed: true}).Requests
	if len(failed) != 1 || failed[0].Status != 200 || failed[0].Error != "grpc-status 5 NOT_FOUND" {
		t.Fatalf("failed: %+v", failed)
	}
	if r := must(t, e.Request, query.RequestRequest{ID: failed[0].ID}); r.StatusText != "grpc-status 5 NOT_FOUND" {
		t.Errorf("its status text is %q", r.StatusText)
	}
}
