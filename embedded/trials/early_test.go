package trials

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects/source"
)

// announced is the line that natscope prints with --ready-json.
type announced struct{ Listen, Admin, HTTP, DevTools, NATS, Space, Client string }

// TestEverybodyIsEarly: the commands store, gateway and ingest and a producer
// start before there is a NATS server. They wait and say so; when it comes, all work.
func TestEverybodyIsEarly(t *testing.T) {
	t.Parallel()
	srv := newServer(t, freePorts(t, 1)[0])
	url := srv.url()
	gateway := run(t, "gateway", "--nats", url, "--port", "0", "--ready-json")
	ingest := run(t, "ingest", "--nats", url, "--port", "0", "--ready-json")
	l := startLoad(t, url, "early", 100)
	stores := []*process{run(t, "store", "--nats", url, "--ready-json"), run(t, "store", "--nats", url, "--ready-json")}
	for _, p := range append([]*process{gateway, ingest}, stores...) {
		until(t, patience, p.name+" says what it waits for", func() bool {
			select {
			case <-p.exited:
				t.Fatalf("%s ended (%v) instead of waiting; log:\n%s", p.name, p.err, &p.log)
			default:
			}
			return strings.Contains(p.log.String(), "waiting for it")
		})
	}
	until(t, patience, "the producer says what it waits for", func() bool { return strings.Contains(l.p.Stats().LastError, "connecting to NATS") })
	srv.up()
	back := time.Now()
	var g, in announced
	for _, s := range stores {
		s.ready(nil)
	}
	gateway.ready(&g)
	ingest.ready(&in)
	if in.Client == "" || !strings.HasPrefix(in.Client, in.HTTP) {
		t.Errorf("the ingest says %+v", in)
	}
	explained(t, 10*time.Second, func() (bool, string) {
		titles := rows(t, g.HTTP, "early-1")
		return slices.Equal(titles, []string{"early"}), "the gateway lists the early producer: " + strings.Join(titles, ", ")
	})
	dt := dial(t, g.HTTP, "dev/early-1")
	dt.call("Runtime.enable", nil)
	until(t, patience, "its console is there from the first line", func() bool { c := dt.console(); return len(c) > 0 && c[0].Text == "2" })
	t.Logf("everything works %v after the server came", time.Since(back))
	v := openView(t, "a reader", url, l.p.Limits())
	l.finish(t)
	stats := l.p.Stats()
	for plane, p := range stats.Planes {
		if p.Dropped > 0 || p.Recorded != p.Published+p.Coalesced {
			t.Errorf("plane %s: %+v", plane, p)
		}
	}
	until(t, patience, "the reader has everything", func() bool { return v.covers(stats) })
	v.verifyState(t, l)
	for _, p := range append([]*process{gateway, ingest}, stores...) {
		p.terminate(15 * time.Second)
	}
}

// names are those of case H6: what people call programs, and what breaks subjects and keys.
var names = []string{"a.b", "a b", "a:b", "服务", "*", ">", "", strings.Repeat("long", 1250), "a..b", "A", "a", "a@b~c", "$SYS", "-", "_space", "\x00\n\t", "ünï", "x\xff"}

// TestH6Names: whatever a program is called, it is a source of its own, is listed
// under exactly that name, and nobody's connection suffers.
func TestH6Names(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	startStore(t, srv.url(), limitedStorage, everybodyStays)
	gateway := startGateway(t, srv.url(), everybodyStays)
	v := openView(t, "a reader", srv.url(), everybodyStays)
	ids := make(map[string]string)
	var producers []*producer.Producer
	for i, name := range names {
		p, err := producer.Start(producer.Options{Service: name, Instance: "1", URL: srv.url(), Describe: func(d *source.Descriptor) { d.Name = name }})
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		producers = append(producers, p)
		t.Cleanup(func() { closeSoon(p) })
		if other, taken := ids[string(p.ID())]; taken {
			t.Errorf("%q and %q have the same id %s", name, other, p.ID())
		}
		ids[string(p.ID())] = name
		p.Record("console", "message", line(i+1))
	}
	for i, name := range names {
		flushed(t, producers[i])
		id := producers[i].ID()
		until(t, patience, fmt.Sprintf("%q is there", name), func() bool { return v.connected(id) && len(v.lines[id]) == 1 })
		want := strings.ToValidUTF8(name, "\uFFFD")
		if name == "" {
			want = string(id) // Without a name, the id is what there is to show.
		}
		if titles := rows(t, gateway, string(id)); !slices.Equal(titles, []string{want}) {
			t.Errorf("%.40q is listed as %.80q", name, titles)
		}
		if got := v.lines[id][0]; got != uint64(i+1) {
			t.Errorf("%.40q has the record of number %d", name, got)
		}
		dt := dial(t, gateway, "dev/"+string(id))
		if m := dt.call("DOM.getDocument", map[string]any{"depth": 2}); m.Error != nil {
			t.Errorf("%.40q cannot be opened: %s", name, m.Error.Message)
		}
	}
	if n := len(list(t, gateway)); n != 1+len(names) {
		t.Errorf("%d rows for %d sources and their space", n, len(names))
	}
	for i, p := range producers {
		if st := p.Stats(); st.LastError != "" || !st.Connected {
			t.Errorf("%.40q: %+v", names[i], st)
		}
	}
}
