package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/store/replica"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/realm"
	"github.com/natscope/natscope/subjects/tree"
)

// secured is a broker whose users have the permissions of natscope's parts.
type secured struct {
	t      *testing.T
	server *server.Server

	mu      sync.Mutex
	refused map[string][]string
}

func securedServer(t *testing.T, users map[string]subjects.Permissions) *secured {
	t.Helper()
	s := &secured{t: t, refused: make(map[string][]string)}
	o := &server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true, Websocket: server.WebsocketOpts{Host: "127.0.0.1", Port: -1, NoTLS: true}}
	for name, p := range users {
		perms := &server.Permissions{Publish: &server.SubjectPermission{Allow: p.Publish}, Subscribe: &server.SubjectPermission{Allow: p.Subscribe}}
		if p.Responses {
			perms.Response = &server.ResponsePermission{MaxMsgs: 1024, Expires: time.Minute}
		}
		o.Users = append(o.Users, &server.User{Username: name, Password: "secret", Permissions: perms})
	}
	srv, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	s.server = srv
	return s
}

// options are those of a user's connection. What the server refuses is kept.
func (s *secured) options(name string) []nats.Option {
	return []nats.Option{nats.UserInfo(name, "secret"), nats.CustomInboxPrefix(subjects.InboxOf(name)), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if errors.Is(err, nats.ErrPermissionViolation) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.refused[name] = append(s.refused[name], err.Error())
		}
	})}
}

func (s *secured) connect(name string) *nats.Conn {
	s.t.Helper()
	nc, err := nats.Connect(s.server.ClientURL(), s.options(name)...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(nc.Close)
	return nc
}

func (s *secured) refusals(name string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused[name]
}

func allUsers(t *testing.T) map[string]subjects.Permissions {
	t.Helper()
	out := make(map[string]subjects.Permissions)
	add := func(name string, kind subjects.User, sources ...subjects.SourceID) {
		p, err := subjects.PermissionsOf(kind, "dev", name, sources...)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = p
	}
	for _, kind := range subjects.Users() {
		add(string(kind), kind)
	}
	add("orders", subjects.UserProducer, "orders")
	add("billing", subjects.UserProducer, "billing")
	return out
}

// Each part does its work with the permissions that are its own: records and
// bodies are stored, state is kept and read, commands and events go their way.
func TestPermissionsSuffice(t *testing.T) {
	s := securedServer(t, allUsers(t))
	var parts []*Instance
	for _, name := range []string{"store", "gateway", "ingest"} {
		o := Options{Space: "dev", Conn: s.connect(name), HTTPAddr: "127.0.0.1:0", Parts: Parts{Store: name == "store", Gateway: name == "gateway", Ingest: name == "ingest"}}
		i, err := Start(t.Context(), o)
		if err != nil {
			t.Fatalf("%s: %v; refused: %v", name, err, s.refusals(name))
		}
		t.Cleanup(func() { closeTest(t, i) })
		parts = append(parts, i)
	}
	p, err := producer.Start(producer.Options{ID: "orders", Service: "orders", Space: "dev", URL: s.server.ClientURL(), NATS: s.options("orders")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = p.Close(ctx)
	})
	p.OnCommand(string(realm.MethodEdit), func(context.Context, json.RawMessage) (any, error) { return map[string]bool{"edited": true}, nil })
	p.Record(subjects.PlaneTree, tree.TopicSnapshot, tree.Snapshot{Version: tree.SchemaVersion, Profile: tree.ProfileComponent, Revision: 1, Root: &tree.Node{ID: 1, Name: "App"}})
	gw := parts[1]
	deadline := time.Now().Add(15 * time.Second)
	for {
		var nodes int
		gw.figures.state.View(func(sp *fold.Space) {
			if src := sp.Source("orders"); src != nil && src.Connected {
				nodes = src.Tree.Len()
			}
		})
		if nodes == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Logf("%+v", gw.figures.state.Status())
			gw.figures.state.View(func(sp *fold.Space) {
				for _, x := range sp.Sources() {
					t.Logf("%s %v %d %v", x.ID, x.Connected, x.Tree.Len(), x.Faults)
				}
			})
			t.Fatalf("the gateway does not see the source's tree; refused: store %v, gateway %v, orders %v", s.refusals("store"), s.refusals("gateway"), s.refusals("orders"))
		}
		time.Sleep(10 * time.Millisecond)
	}
	// A gateway that comes later reads what the store saved.
	r, err := replica.Open(t.Context(), replica.Options{Conn: s.connect("gateway"), Space: "dev"})
	if err != nil {
		t.Fatalf("a second gateway: %v; refused: %v", err, s.refusals("gateway"))
	}
	defer func() { _ = r.Close() }()
	nc := s.connect("gateway")
	m, err := nc.Request(subjects.Command("dev", "orders", p.Generation()), []byte(`{"method":"tree.edit","params":{}}`), 5*time.Second)
	if err != nil || string(m.Data) != `{"ok":true,"result":{"edited":true}}` {
		t.Errorf("a command: %v, %v", m, err)
	}
	// A body is read from its stream as what the gateway is, by the gateway that
	// folds for itself and by one that comes later.
	body := p.Body("r1", subjects.ResponseBody)
	body.Write([]byte("what was answered"))
	body.End(subjects.BodyComplete, int64(len("what was answered")))
	subject := subjects.BodySubject{Space: "dev", Source: "orders", Generation: p.Generation(), Request: "r1", Direction: subjects.ResponseBody}
	for name, from := range map[string]*replica.Replica{"the gateway": gw.figures.state, "a later gateway": r} {
		if got := awaitBody(t, from, subject); string(got) != "what was answered" {
			t.Errorf("%s reads %q; refused: gateway %v, orders %v", name, got, s.refusals("gateway"), s.refusals("orders"))
		}
	}
	if _, err := nc.Request(subjects.Audit("dev", "gw"), []byte(`{}`), 5*time.Second); err != nil {
		t.Errorf("an audit record: %v", err)
	}
	if resp, err := http.Get(gw.HTTP() + "/json/list"); err != nil || resp.Body.Close() != nil {
		t.Error(err)
	}
	for name := range allUsers(t) {
		if r := s.refusals(name); len(r) > 0 {
			t.Errorf("%s was refused what it needs: %v", name, r)
		}
	}
}

// awaitBody reads a body once it has come to its end; nil if it does not.
func awaitBody(t *testing.T, r *replica.Replica, subject subjects.BodySubject) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	for {
		b, err := r.Body(ctx, subject)
		switch {
		case err == nil && b.End == subjects.BodyComplete:
			return b.Data
		case ctx.Err() != nil:
			t.Logf("%+v, %v", b, err)
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Nobody can do what is another's.
func TestPermissionsAreLeast(t *testing.T) {
	s := securedServer(t, allUsers(t))
	admin := s.connect("store")
	i, err := Start(t.Context(), Options{Space: "dev", Conn: admin, Parts: Parts{Store: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer closeTest(t, i)
	const gen = "01arz3ndektsv4rrffq69g5fav"
	for _, c := range []struct{ user, publish, subscribe string }{
		// A source is no other source, hears no commands of others, and reads nothing back.
		{user: "billing", publish: "natscope.dev.rec.orders." + gen + ".tree"},
		{user: "billing", publish: "natscope.dev.body.orders." + gen + ".r1.res"},
		{user: "billing", publish: "natscope.dev.hb.orders"},
		{user: "billing", publish: "natscope.dev.evt.orders.gw.s1"},
		{user: "billing", publish: "natscope.dev.claim.orders"},
		{user: "billing", publish: "natscope.prod.rec.billing." + gen + ".tree"},
		{user: "billing", subscribe: "natscope.dev.cmd.orders." + gen},
		{user: "billing", subscribe: "natscope.dev.rec.>"},
		{user: "billing", subscribe: "_INBOX_orders.>"},
		{user: "billing", subscribe: "_INBOX.>"},
		{user: "billing", publish: "$KV.NATSCOPE_STATE_dev.billing.head"},
		{user: "billing", publish: "$JS.API.CONSUMER.CREATE.NATSCOPE_REC_dev.x.natscope.dev.rec.>"},
		{user: "billing", publish: "$JS.API.STREAM.PURGE.NATSCOPE_REC_dev"},
		{user: "billing", publish: "natscope.dev.cmd.orders." + gen},
		{user: "billing", publish: "natscope.dev.ctl.orders." + gen},
		{user: "billing", publish: "natscope.dev.audit.gw"},
		{user: "ingest", publish: "natscope.dev.cmd.orders." + gen},
		{user: "ingest", publish: "$KV.NATSCOPE_STATE_dev.orders.head"},
		// A gateway writes neither records nor state, and no stream of another space.
		{user: "gateway", publish: "natscope.dev.rec.orders." + gen + ".tree"},
		{user: "gateway", publish: "natscope.dev.ctl.orders." + gen},
		{user: "gateway", publish: "$KV.NATSCOPE_STATE_dev.orders.head"},
		{user: "gateway", publish: "$JS.API.STREAM.DELETE.NATSCOPE_REC_dev"},
		{user: "gateway", publish: "$JS.API.STREAM.CREATE.X"},
		{user: "gateway", publish: "$JS.API.CONSUMER.CREATE.NATSCOPE_REC_prod.x.natscope.prod.rec.>"},
		{user: "gateway", publish: "$JS.API.CONSUMER.CREATE.NATSCOPE_REC_dev"},
		{user: "gateway", subscribe: "natscope.dev.cmd.>"},
		{user: "gateway", subscribe: "natscope.prod.evt.>"},
		// A store sends no records, and deletes no stream.
		{user: "store", publish: "natscope.dev.rec.orders." + gen + ".tree"},
		{user: "store", publish: "$JS.API.STREAM.DELETE.NATSCOPE_REC_dev"},
		{user: "store", publish: "$JS.API.STREAM.PURGE.NATSCOPE_REC_dev"},
		{user: "store", publish: "natscope.dev.audit.gw"},
		// A viewer asks, and that is all.
		{user: "viewer", publish: "natscope.dev.cmd.orders." + gen},
		{user: "viewer", publish: "$JS.API.DIRECT.GET.KV_NATSCOPE_STATE_dev"},
		{user: "viewer", subscribe: "natscope.>"},
		{user: "auditor", publish: "natscope.dev.audit.gw"},
		{user: "auditor", publish: "$JS.API.CONSUMER.CREATE.NATSCOPE_REC_dev.x.natscope.dev.rec.>"},
		{user: "auditor", publish: "$JS.API.STREAM.PURGE.NATSCOPE_AUDIT_dev"},
		{user: "auditor", subscribe: "natscope.dev.audit.>"},
		{user: "viewer", publish: "natscope.prod.query.sources"},
	} {
		nc := s.connect(c.user)
		before := len(s.refusals(c.user))
		what := "publish " + c.publish
		if c.subscribe != "" {
			what = "subscribe " + c.subscribe
			_, err = nc.SubscribeSync(c.subscribe)
		} else {
			err = nc.Publish(c.publish, []byte("{}"))
		}
		if err == nil {
			err = nc.FlushTimeout(5 * time.Second)
		}
		if err != nil {
			t.Errorf("%s: %s: %v", c.user, what, err)
		}
		deadline := time.Now().Add(2 * time.Second)
		for len(s.refusals(c.user)) == before && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
		if len(s.refusals(c.user)) == before {
			t.Errorf("%s may %s", c.user, what)
		}
		nc.Close()
	}
}

// A consumer of the records cannot be pointed at another subject of the stream with two filters or none.
func TestGatewayConsumersAreFiltered(t *testing.T) {
	s := securedServer(t, allUsers(t))
	i, err := Start(t.Context(), Options{Space: "dev", Conn: s.connect("store"), Parts: Parts{Store: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer closeTest(t, i)
	js, err := jetstream.New(s.connect("gateway"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := js.CreateConsumer(ctx, subjects.RecordStreamName("dev"), jetstream.ConsumerConfig{FilterSubjects: []string{"a", "b"}}); err == nil {
		t.Error("a consumer with two filters was created")
	}
	if s := fmt.Sprint(s.refusals("gateway")); s == "[]" {
		t.Error("the server refused nothing")
	}
}

// Case J10: a page that speaks to NATS itself, through its WebSocket, writes as
// itself, and neither another source's tree nor anything of another space.
func TestPagesForgeNothingOverWebSocket(t *testing.T) {
	s := securedServer(t, allUsers(t))
	i, err := Start(t.Context(), Options{Space: "dev", Conn: s.connect("store"), Parts: Parts{Store: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer closeTest(t, i)
	nc, err := nats.Connect(s.server.WebsocketURL(), s.options("billing")...)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(s.connect("store"))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), subjects.RecordStreamName("dev"))
	if err != nil {
		t.Fatal(err)
	}
	const gen = "01arz3ndektsv4rrffq69g5fav"
	for n, subject := range []string{"natscope.dev.rec.orders." + gen + ".tree", "natscope.dev.hb.orders", "natscope.prod.rec.billing." + gen + ".tree", "$KV.NATSCOPE_STATE_dev.orders.head", "natscope.dev.cmd.orders." + gen} {
		if err := errors.Join(nc.Publish(subject, []byte("{}")), nc.FlushTimeout(5*time.Second)); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(5 * time.Second)
		for len(s.refusals("billing")) <= n {
			if time.Now().After(deadline) {
				t.Fatalf("a page may publish to %s", subject)
			}
			time.Sleep(time.Millisecond)
		}
	}
	// Its own record is taken, and is the only one of the stream.
	own := &nats.Msg{Subject: "natscope.dev.rec.billing." + gen + ".tree", Data: []byte("{}")}
	if _, err := nc.RequestMsg(own, 5*time.Second); err != nil {
		t.Errorf("its own record: %v", err)
	}
	info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(">"))
	if err != nil {
		t.Fatal(err)
	}
	if len(info.State.Subjects) != 1 || info.State.Subjects[own.Subject] != 1 {
		t.Errorf("the stream holds %v", info.State.Subjects)
	}
}
