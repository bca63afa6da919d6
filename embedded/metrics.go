package embedded

import (
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/natscope/natscope/cdpgw"
	"github.com/natscope/natscope/cdpgw/access"
	"github.com/natscope/natscope/producer/ingest"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
)

// metrics collects the figures of what runs in this process. docs/operating.md lists them.
type metrics struct {
	space   subjects.Space
	conn    *nats.Conn
	state   *replica.Replica // nil without store and gateway
	gateway *cdpgw.Gateway   // nil without one
	ingest  *ingest.Server   // nil without one
}

// figure is one metric: what it is called, what it means, and where it comes from.
type figure struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*metrics) float64
	// of reports whether the process has what the figure is about.
	of func(*metrics) bool
}

func anyPart(*metrics) bool     { return true }
func hasState(m *metrics) bool  { return m.state != nil }
func hasDoors(m *metrics) bool  { return m.gateway != nil }
func hasIngest(m *metrics) bool { return m.ingest != nil }

func newFigure(name, help string, kind prometheus.ValueType, of func(*metrics) bool, value func(*metrics) float64) figure {
	return figure{prometheus.NewDesc("natscope_"+name, help, []string{"space"}, nil), kind, value, of}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// figures are all metrics of natscope's own. Replica figures are read once for all of them.
var figures = []figure{
	newFigure("nats_connected", "1 while the connection to NATS is up.", gauge, anyPart, func(m *metrics) float64 { return truth(m.conn.IsConnected()) }),
	newFigure("nats_reconnects_total", "Reconnects to NATS.", counter, anyPart, func(m *metrics) float64 { return float64(m.conn.Stats().Reconnects) }),
	newFigure("gateway_connections", "Open DevTools connections.", gauge, hasDoors, func(m *metrics) float64 { return float64(m.gateway.Stats().Connections) }),
	newFigure("gateway_connections_total", "DevTools connections that were admitted.", counter, hasDoors, func(m *metrics) float64 { return float64(m.gateway.Stats().Opened) }),
	newFigure("gateway_lagged_total", "DevTools connections that were closed because they could not keep up.", counter, hasDoors, func(m *metrics) float64 { return float64(m.gateway.Stats().Lagged) }),
	newFigure("gateway_revoked_total", "DevTools connections that were closed because their access was withdrawn.", counter, hasDoors, func(m *metrics) float64 { return float64(m.gateway.Stats().Revoked) }),
	newFigure("gateway_queued_bytes", "Bytes that wait for DevTools clients.", gauge, hasDoors, func(m *metrics) float64 { return float64(m.gateway.Stats().QueuedBytes) }),
	newFigure("ingest_pages", "Browser pages that are sources now.", gauge, hasIngest, func(m *metrics) float64 { return float64(m.ingest.Stats().Pages) }),
	newFigure("ingest_connections", "Open connections of browser pages.", gauge, hasIngest, func(m *metrics) float64 { return float64(m.ingest.Stats().Connections) }),
	newFigure("ingest_admitted_total", "Pages that were admitted.", counter, hasIngest, func(m *metrics) float64 { return float64(m.ingest.Stats().Admitted) }),
	newFigure("ingest_messages_total", "Messages of pages that were taken.", counter, hasIngest, func(m *metrics) float64 { return float64(m.ingest.Stats().Messages) }),
	newFigure("ingest_malformed_total", "Messages of pages that could not be read.", counter, hasIngest, func(m *metrics) float64 { return float64(m.ingest.Stats().Malformed) }),
}

// stateFigures are those of the replica.
var stateFigures = []struct {
	figure
	value func(replica.Status) float64
}{
	{newFigure("replica_current", "1 while the state follows the stream.", gauge, hasState, nil), func(s replica.Status) float64 { return truth(s.Ready && s.Waiting == "") }},
	{newFigure("replica_covered_sequence", "Stream sequence of the last record that was folded.", gauge, hasState, nil), func(s replica.Status) float64 { return float64(s.Covered) }},
	{newFigure("sources", "Sources that are kept.", gauge, hasState, nil), func(s replica.Status) float64 { return float64(s.Sources) }},
	{newFigure("sources_connected", "Sources that live.", gauge, hasState, nil), func(s replica.Status) float64 { return float64(s.Connected) }},
	{newFigure("replica_applied_total", "Messages that were folded.", counter, hasState, nil), func(s replica.Status) float64 { return float64(s.Applied) }},
	{newFigure("replica_stray_total", "Messages that belong to no source.", counter, hasState, nil), func(s replica.Status) float64 { return float64(s.Stray) }},
	{newFigure("replica_skipped_total", "Stream sequences that retention took before they were read.", counter, hasState, nil), func(s replica.Status) float64 { return float64(s.Skipped) }},
	{newFigure("replica_evicted_total", "Disconnected sources that were dropped to keep the limit.", counter, hasState, nil), func(s replica.Status) float64 { return float64(s.Evicted) }},
	{newFigure("replica_reloads_total", "Times that the saved state was read.", counter, hasState, nil), func(s replica.Status) float64 { return float64(s.Reloads) }},
	{newFigure("replica_rebuilds_total", "Times that the stream had to be taken up again.", counter, hasState, nil), func(s replica.Status) float64 { return float64(s.Rebuilds) }},
	{newFigure("replica_resets_total", "Times that the stream was a new one.", counter, hasState, nil), func(s replica.Status) float64 { return float64(s.Resets) }},
}

// rejected counts refusals of pages by code.
var rejected = prometheus.NewDesc("natscope_ingest_rejected_total", "Pages and messages that were refused, by code.", []string{"space", "code"}, nil)

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range figures {
		ch <- f.desc
	}
	for _, f := range stateFigures {
		ch <- f.desc
	}
	ch <- rejected
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	space := string(m.space)
	for _, f := range figures {
		if f.of(m) {
			ch <- prometheus.MustNewConstMetric(f.desc, f.kind, f.value(m), space)
		}
	}
	if m.state != nil {
		s := m.state.Status()
		for _, f := range stateFigures {
			ch <- prometheus.MustNewConstMetric(f.desc, f.kind, f.value(s), space)
		}
	}
	if m.ingest != nil {
		for code, n := range m.ingest.Stats().Rejected {
			ch <- prometheus.MustNewConstMetric(rejected, counter, float64(n), space, code)
		}
	}
}

// handler serves the metrics of this process.
func (m *metrics) handler() http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(m, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
}

// granted passes requests on that some token, or none where none is needed, let in for the space.
func (m *metrics) granted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !access.GrantOf(r).Space(string(m.space)) {
			http.Error(w, "Your token does not allow to see the space "+string(m.space)+".", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
