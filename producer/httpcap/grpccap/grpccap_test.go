package grpccap_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/httpcap/grpccap"
	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestCalls makes a call that works, one that is refused, a stream that is left,
// and one to nobody, and looks at both sides.
func TestCalls(t *testing.T) {
	nats := natstest.Start(t)
	storage := subjects.Storage{Memory: true}
	nats.Streams(subjects.DefaultSpace, storage)
	p, err := producer.Start(producer.Options{Service: "caller", Instance: "test", URL: nats.URL(), Redact: producer.RedactSecrets()})
	if err != nil {
		t.Fatal(err)
	}
	checks := health.NewServer()
	checks.SetServingStatus("shop", healthpb.HealthCheckResponse_SERVING)
	srv := grpc.NewServer(grpc.StatsHandler(grpccap.Server(p)), grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
		grpc.SetHeader(ctx, metadata.Pairs("x-served-by", "one"))
		grpc.SetTrailer(ctx, metadata.Pairs("x-cost", "7"))
		return h(ctx, req)
	}))
	healthpb.RegisterHealthServer(srv, checks)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()

	dial := func(addr string) (healthpb.HealthClient, func()) {
		c, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStatsHandler(grpccap.Client(p, addr)))
		if err != nil {
			t.Fatal(err)
		}
		return healthpb.NewHealthClient(c), func() { c.Close() }
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	client, closeClient := dial(l.Addr().String())
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer s3cret", "x-tenant", "acme", "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if r, err := client.Check(ctx, &healthpb.HealthCheckRequest{Service: "shop"}); err != nil || r.Status != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("%v, %v", r, err)
	}
	if _, err := client.Check(ctx, &healthpb.HealthCheckRequest{Service: "nobody"}); status.Code(err) != codes.NotFound {
		t.Fatalf("an unknown service: %v", err)
	}
	watchCtx, leave := context.WithCancel(ctx)
	watch, err := client.Watch(watchCtx, &healthpb.HealthCheckRequest{Service: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if _, err := watch.Recv(); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			checks.SetServingStatus("shop", healthpb.HealthCheckResponse_NOT_SERVING)
		}
	}
	leave()
	if _, err := watch.Recv(); err == nil || err == io.EOF {
		t.Fatalf("a stream that was left: %v", err)
	}
	closeClient()
	nobody, closeNobody := dial("127.0.0.1:1")
	if _, err := nobody.Check(ctx, &healthpb.HealthCheckRequest{}); status.Code(err) != codes.Unavailable {
		t.Fatalf("nobody there: %v", err)
	}
	closeNobody()
	srv.GracefulStop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}

	var s network.State
	for _, m := range nats.Read(subjects.RecordStreamName(subjects.DefaultSpace)) {
		subject, err := subjects.ParseRecord(m.Subject)
		if err != nil {
			t.Fatal(err)
		}
		if subject.Plane != subjects.PlaneNet {
			continue
		}
		f, err := subjects.DecodeFrame(m.Header, m.Data)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range f.Records {
			if c, err := s.Apply("g", r.T, r.Topic, r.Data, network.Keep{}); err != nil || c == nil {
				t.Errorf("%s %s: change %v, %v", r.Topic, r.Data, c, err)
			}
		}
		if strings.Contains(string(m.Data), "s3cret") {
			t.Errorf("a secret in %s", m.Data)
		}
	}
	bodies := make(map[string]string)
	for _, m := range nats.Read(subjects.BodyStreamName(subjects.DefaultSpace)) {
		subject, err := subjects.ParseBody(m.Subject)
		if err != nil {
			t.Fatal(err)
		}
		bodies[string(subject.Request)+"."+string(subject.Direction)] += string(m.Data)
	}
	// protojson varies its spaces on purpose.
	body := func(r *network.Request, d subjects.Direction) string {
		return strings.ReplaceAll(bodies[string(r.ID())+"."+string(d)], ": ", ":")
	}
	var got []string
	for _, r := range s.Requests {
		v := r.Start.Value
		line := fmt.Sprintf("%s %s %s", v.Direction, v.URL[strings.LastIndexByte(v.URL, '/')+1:], r.Ending)
		switch {
		case r.Error != nil:
			line += " " + r.Error.Text[:strings.IndexByte(r.Error.Text, ':')]
		case r.Response == nil || r.Response.Value.Status != 200:
			t.Errorf("%s: response %+v", line, r.Response)
		default:
			line += fmt.Sprintf(" %q %q %q", body(r, subjects.RequestBody), body(r, subjects.ResponseBody), r.End.Trailers[0][1])
			if r.End.Bytes > 0 && (r.End.Wire == 0 || r.Received.Bytes != r.End.Bytes) {
				t.Errorf("%s: end %+v, received %+v", line, r.End, r.Received)
			}
		}
		got = append(got, line)
		if !slices.Contains(v.Headers, network.Header{"x-tenant", "acme"}) || v.Trace == "" || (v.Direction == network.Incoming) != (v.Client != "" && v.Route != "") {
			t.Errorf("%s: start %+v", line, v)
		}
	}
	slices.Sort(got)
	const serving, not = `{"status":"SERVING"}` + "\n", `{"status":"NOT_SERVING"}` + "\n"
	ask := fmt.Sprintf("%q", `{"service":"shop"}`+"\n")
	want := []string{
		"in Check finished " + ask + fmt.Sprintf(" %q %q", serving, "0"),
		"in Check truncated " + fmt.Sprintf("%q", `{"service":"nobody"}`+"\n") + ` "" "5"`,
		"in Watch truncated " + ask + fmt.Sprintf(" %q %q", serving+not, "1"),
		"out Check failed Unavailable",
		"out Check finished " + ask + fmt.Sprintf(" %q %q", serving, "0"),
		"out Check truncated " + fmt.Sprintf("%q", `{"service":"nobody"}`+"\n") + ` "" "5"`,
		"out Watch truncated " + ask + fmt.Sprintf(" %q %q", serving+not, "1"),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	first := s.Requests[0]
	if !slices.Contains(first.Response.Value.Headers, network.Header{"x-served-by", "one"}) || !slices.Contains(first.End.Trailers, network.Header{"x-cost", "7"}) ||
		!slices.Contains(first.Start.Value.Headers, network.Header{"authorization", "Bearer [redacted]"}) {
		t.Errorf("metadata: %+v, %+v, %+v", first.Start.Value, first.Response.Value, first.End)
	}
}

// A status with details repeats its message in grpc-status-details-bin, whose
// bytes are shown in hexadecimal: what the rules take out of the one must not
// stay in the other.
func TestSecretsInBinaryMetadata(t *testing.T) {
	const secret = "tr0ub4dor"
	nats := natstest.Start(t)
	nats.Streams(subjects.DefaultSpace, subjects.Storage{Memory: true})
	p, err := producer.Start(producer.Options{Service: "caller", Instance: "test", URL: nats.URL(), Redact: producer.RedactSecrets().And(producer.Redact{Patterns: []string{secret}})})
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer(grpc.StatsHandler(grpccap.Server(p)), grpc.UnaryInterceptor(func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
		st, err := status.New(codes.PermissionDenied, "no such key: "+secret).WithDetails(&healthpb.HealthCheckRequest{Service: secret})
		if err != nil {
			return nil, err
		}
		return nil, st.Err()
	}))
	healthpb.RegisterHealthServer(srv, health.NewServer())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	c, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStatsHandler(grpccap.Client(p, l.Addr().String())))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "x-key-bin", "\x00"+secret, "x-plain-bin", "\x00\xff")
	_, err = healthpb.NewHealthClient(c).Check(ctx, &healthpb.HealthCheckRequest{Service: "shop"})
	if st := status.Convert(err); !strings.Contains(st.Message(), secret) || len(st.Details()) != 1 {
		t.Fatalf("the application does not see what it should: %v", err)
	}
	c.Close()
	srv.GracefulStop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	for _, m := range nats.Read(subjects.RecordStreamName(subjects.DefaultSpace)) {
		told.Write(m.Data)
	}
	all := told.String()
	if strings.Contains(all, secret) || strings.Contains(all, fmt.Sprintf("%x", secret)) {
		t.Errorf("the secret is told: %s", all)
	}
	if !strings.Contains(all, "grpc-status-details-bin") || !strings.Contains(all, `"00ff"`) {
		t.Errorf("too little is told: %s", all)
	}
}

func TestWithoutAProducer(t *testing.T) {
	h := grpccap.Client(nil, "x")
	ctx := h.TagRPC(t.Context(), nil)
	h.HandleRPC(ctx, nil)
	if ctx != t.Context() {
		t.Error("a context without a producer changes")
	}
}
