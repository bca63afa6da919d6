package cdpgw

import "github.com/natscope/natscope/subjects/network"

// resourceTiming holds the phases of a request in milliseconds after RequestTime, -1 for none.
type resourceTiming struct {
	RequestTime              float64 `json:"requestTime"`
	ProxyStart               float64 `json:"proxyStart"`
	ProxyEnd                 float64 `json:"proxyEnd"`
	DNSStart                 float64 `json:"dnsStart"`
	DNSEnd                   float64 `json:"dnsEnd"`
	ConnectStart             float64 `json:"connectStart"`
	ConnectEnd               float64 `json:"connectEnd"`
	SSLStart                 float64 `json:"sslStart"`
	SSLEnd                   float64 `json:"sslEnd"`
	WorkerStart              float64 `json:"workerStart"`
	WorkerReady              float64 `json:"workerReady"`
	WorkerFetchStart         float64 `json:"workerFetchStart"`
	WorkerRespondWithSettled float64 `json:"workerRespondWithSettled"`
	SendStart                float64 `json:"sendStart"`
	SendEnd                  float64 `json:"sendEnd"`
	PushStart                float64 `json:"pushStart"`
	PushEnd                  float64 `json:"pushEnd"`
	ReceiveHeadersStart      float64 `json:"receiveHeadersStart"`
	ReceiveHeadersEnd        float64 `json:"receiveHeadersEnd"`
}

// timingOf returns the phases of a request. Where the source measured none, the
// whole time until the headers counts as waiting. The protocol's connection
// phase includes TLS.
func timingOf(r *network.Request) *resourceTiming {
	t := network.Timing{DNSStart: -1, DNSEnd: -1, ConnectStart: -1, ConnectEnd: -1, TLSStart: -1, TLSEnd: -1, SendStart: -1, SendEnd: -1, HeadersStart: -1, HeadersEnd: -1}
	if m := r.Response.Value.Timing; m != nil {
		t = *m
	}
	out := &resourceTiming{
		RequestTime: seconds(r, r.Start.T), ProxyStart: -1, ProxyEnd: -1, WorkerStart: -1, WorkerReady: -1, WorkerFetchStart: -1, WorkerRespondWithSettled: -1,
		DNSStart: t.DNSStart, DNSEnd: t.DNSEnd, ConnectStart: t.ConnectStart, ConnectEnd: max(t.ConnectEnd, t.TLSEnd), SSLStart: t.TLSStart, SSLEnd: t.TLSEnd,
	}
	out.SendStart = t.SendStart
	if out.SendStart < 0 {
		out.SendStart = max(out.ConnectEnd, out.DNSEnd, 0)
	}
	// DevTools takes 0 for "never", and all the time until the answer for a wait to be sent.
	out.SendStart = max(out.SendStart, 0.001)
	out.SendEnd = max(t.SendEnd, out.SendStart)
	out.ReceiveHeadersEnd = t.HeadersEnd
	if out.ReceiveHeadersEnd < 0 {
		out.ReceiveHeadersEnd = max(r.Response.T-r.Start.T, out.SendEnd)
	}
	out.ReceiveHeadersStart = t.HeadersStart
	if out.ReceiveHeadersStart < 0 {
		out.ReceiveHeadersStart = out.ReceiveHeadersEnd
	}
	return out
}
