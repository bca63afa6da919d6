package trials

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/embedded"
	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/treecap"
	"github.com/natscope/natscope/store"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// commands are what a role answers, by the first word of a line; the value is printed as JSON.
type commands map[string]func(args []string) any

// role runs a part until the function that it returns is called.
type role func(config []byte, log *slog.Logger) (ready any, c commands, end func() error, err error)

var roles = map[string]role{"node": playNode, "configured": playConfigured, "store": playStore, "gateway": playGateway, "source": playSource, "leaver": playLeaver}

// play is the whole life of a process of a trial. It ends when its standard
// input does, so that it cannot outlive the test, or by SIGTERM.
func play(name string, config []byte) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	// Whoever hears that the role is ready may end it at once.
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	ready, c, end, err := roles[name](config, log)
	if err != nil {
		log.Error("cannot play", "role", name, "error", err)
		return 1
	}
	say(ready)
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(os.Stdin); s.Scan(); {
			lines <- s.Text()
		}
	}()
	for end != nil {
		select {
		case <-stop:
		case l, ok := <-lines:
			if ok {
				words := strings.Fields(l)
				say(c[words[0]](words[1:]))
				continue
			}
		}
		break
	}
	if end == nil {
		return 0
	}
	if err := end(); err != nil {
		log.Error("did not end well", "role", name, "error", err)
		return 1
	}
	return 0
}

func say(v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", data)
}

// nodeConfig is one server of a cluster.
type nodeConfig struct {
	Name, Dir     string
	Port, Cluster int
	Routes        []int
}

func playNode(config []byte, _ *slog.Logger) (any, commands, func() error, error) {
	var c nodeConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, nil, nil, err
	}
	o := &server.Options{
		ServerName: c.Name, Host: "127.0.0.1", Port: c.Port, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: c.Dir, JetStreamMaxMemory: 256 << 20, JetStreamMaxStore: 16 << 30,
		NoFastProducerStall: true, MaxPending: 16 << 20, WriteDeadline: 5 * time.Second, PingInterval: 5 * time.Second,
		Cluster: server.ClusterOpts{Name: "trial", Host: "127.0.0.1", Port: c.Cluster},
	}
	for _, r := range c.Routes {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: "127.0.0.1:" + strconv.Itoa(r)})
	}
	s, err := server.NewServer(o)
	if err != nil {
		return nil, nil, nil, err
	}
	s.Start()
	if !s.ReadyForConnections(patience) {
		return nil, nil, nil, fmt.Errorf("node %s does not accept connections", c.Name)
	}
	return "ready", nil, func() error { s.Shutdown(); s.WaitForShutdown(); return nil }, nil
}

// storeConfig is one store.
type storeConfig struct {
	URL     string
	Space   subjects.Space
	Storage subjects.Storage
	Limits  subjects.Limits
}

func playStore(config []byte, log *slog.Logger) (any, commands, func() error, error) {
	var c storeConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, nil, nil, err
	}
	nc, err := nats.Connect(c.URL, embedded.ConnOptions("trial store", log)...)
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := store.Start(ctx, store.Options{Conn: nc, Space: c.Space, Storage: c.Storage, Limits: c.Limits, Logger: log})
	if err != nil {
		return nil, nil, nil, err
	}
	status := func([]string) any { return s.Replica().Status() }
	return "ready", commands{"status": status}, func() error { return s.Close(ctx) }, nil
}

// gatewayConfig is one gateway. Its ready line is its address.
type gatewayConfig struct {
	URL    string
	Limits subjects.Limits
}

func playGateway(config []byte, log *slog.Logger) (any, commands, func() error, error) {
	var c gatewayConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, nil, nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	i, err := embedded.Start(ctx, embedded.Options{NATS: c.URL, Parts: embedded.Parts{Gateway: true}, HTTPAddr: "127.0.0.1:0", Limits: c.Limits, Logger: log})
	if err != nil {
		return nil, nil, nil, err
	}
	return i.HTTP(), nil, func() error { return i.Close(context.Background()) }, nil
}

// sourceConfig is one producer.
type sourceConfig struct {
	URL, Service, Instance string
	// Nodes is how many nodes hang below the root of its tree; PerSecond is how many numbers it publishes.
	Nodes, PerSecond int
}

// sourceReady is what a source says of itself.
type sourceReady struct {
	ID         subjects.SourceID
	Generation subjects.Generation
}

// sourceCost is what a source has used so far.
type sourceCost struct {
	// CPU is the processor time of the whole process, Heap its live heap in bytes.
	CPU     time.Duration
	Heap    uint64
	Numbers uint64
	Stats   producer.Stats
}

func playSource(config []byte, log *slog.Logger) (any, commands, func() error, error) {
	var c sourceConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, nil, nil, err
	}
	p, err := producer.Start(producer.Options{Service: c.Service, Instance: c.Instance, URL: c.URL, Logger: log})
	if err != nil {
		return nil, nil, nil, err
	}
	tree := treecap.New(p, treecap.Options{RootName: c.Service})
	for i := range c.Nodes {
		tree.Root().Add("worker", treecap.Attr("n", i))
	}
	l := drive(p, nil, c.PerSecond)
	cmd := commands{
		"request": func(args []string) any {
			p.Record(subjects.PlaneNet, network.TopicStart, network.Start{ID: network.RequestID(args[0]), Method: "GET", URL: "http://example.test/" + args[0]})
			return "started"
		},
		"console": func(args []string) any {
			n, err := strconv.ParseUint(args[0], 10, 64)
			if err != nil {
				return err.Error()
			}
			p.Record(subjects.PlaneConsole, "message", line(n))
			return "said"
		},
		"flush": func([]string) any {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			return fmt.Sprint(p.Flush(ctx))
		},
		"cost": func([]string) any { return sourceCost{cpuTime(), liveHeap(), l.n.Load(), p.Stats()} },
	}
	end := func() error {
		l.stop()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return p.Close(ctx)
	}
	return sourceReady{p.ID(), p.Generation()}, cmd, end, nil
}

// leaverConfig is a program that ends while there is no server.
type leaverConfig struct {
	URL string
	// Close says that it says goodbye, as a well-behaved program does.
	Close bool
}

// playLeaver records something and is done. Its ready line says how long its goodbye took.
func playLeaver(config []byte, log *slog.Logger) (any, commands, func() error, error) {
	var c leaverConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, nil, nil, err
	}
	p, err := producer.Start(producer.Options{Service: "leaver", URL: c.URL, Logger: log})
	if err != nil {
		return nil, nil, nil, err
	}
	treecap.New(p, treecap.Options{}).Root().Add("left")
	for i := range 1000 {
		p.Record(subjects.PlaneConsole, "message", line(i))
	}
	start := time.Now()
	if c.Close {
		_ = p.Close(context.Background()) // Nothing can be delivered, and that is the point.
	}
	return time.Since(start), nil, nil, nil
}
