package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/natscope/natscope/embedded"
	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/goreal"
)

// Depot is what a Go program exposes to the Console.
type Depot struct {
	//lint:ignore U1000 the realm finds it by reflection, and reads under it
	mu      sync.RWMutex
	Parcels map[int]*Parcel
	Routes  map[Stop]string
	Long    []*Parcel
	Failure error
	Started time.Time
}

// Stop is a key that is no plain one.
type Stop struct{ Street, House int }

// State is a named number.
type State int

// String names the state.
func (s State) String() string { return [...]string{"Waiting", "OnItsWay", "Delivered"}[s] }

// Parcel is one thing in the depot.
type Parcel struct {
	ID     int
	To     string
	Weight float64
	State  State
	Tags   []string
	Wait   time.Duration
	//lint:ignore U1000 the Console shows it, dimmed
	secrets int
}

// Send is a method with parameters.
func (p *Parcel) Send(to string, weight float64) error {
	if weight > 100 {
		return fmt.Errorf("send %d: %w", p.ID, errors.New("too heavy"))
	}
	p.To = to
	return nil
}

func newDepot() *Depot {
	d := &Depot{Parcels: make(map[int]*Parcel), Routes: map[Stop]string{{1, 2}: "north", {3, 4}: "south"}, Started: time.Now(),
		Failure: fmt.Errorf("load depot: %w", &fs.PathError{Op: "open", Path: "/var/depot", Err: fs.ErrNotExist})}
	for i := range 12 {
		d.Parcels[i] = &Parcel{ID: i, To: fmt.Sprintf("House %d", i), Weight: float64(i) / 2, State: State(i % 3), Tags: []string{"fragile", "express"}, Wait: 1500 * time.Millisecond}
	}
	for i := range 1_000_000 {
		d.Long = append(d.Long, d.Parcels[i%12])
	}
	return d
}

// goConsole is DevTools at a Go program.
type goConsole struct {
	*devtools
	depot *Depot
}

func startGoConsole(t *testing.T) *goConsole {
	t.Helper()
	i, depot := startDepot(t)
	c := &goConsole{depot: depot}
	c.devtools = openDevTools(t, browser(t), i.DevTools())
	c.panel("console")
	c.waitFor("the prompt", ".cm-content")
	// The prompt evaluates nothing before it knows the context.
	c.waitText(".console-main-toolbar .title, .soft-dropdown .title", "dev")
	c.settle()
	c.settle()
	return c
}

// startDepot runs natscope in this process, with a Go program in it.
func startDepot(t *testing.T) (*embedded.Instance, *Depot) {
	t.Helper()
	i, err := embedded.Start(t.Context(), embedded.Options{HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := producer.Start(producer.Options{URL: i.NATS(), Service: "depot", Instance: "1", Name: "depot"})
	if err != nil {
		t.Fatal(err)
	}
	r := goreal.New(p, goreal.Options{})
	depot := newDepot()
	if err := r.Expose("depot", depot, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := i.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return i, depot
}

// write puts text into the prompt. Its focus moves for a while after the panel
// was opened, so it looks whether the text is there.
func (c *goConsole) write(text string) {
	c.t.Helper()
	c.poll("the prompt has "+text, func() (bool, string) {
		now := strings.Join(c.texts(".cm-content"), "\n")
		if strings.Contains(now, strings.Join(strings.Fields(text), " ")) {
			return true, ""
		}
		c.click(".cm-content", "")
		if now != "" {
			c.clear()
		}
		if _, err := chromedp.Call(c.ctx, input.InsertText, input.InsertTextParams{Text: text}); err != nil {
			c.t.Fatal(err)
		}
		return false, now
	})
}

// run evaluates an expression as a person does, and waits for the answer.
func (c *goConsole) run(expression string, want ...string) {
	c.t.Helper()
	before := len(c.texts(".console-user-command-result, .console-error-level"))
	// The blank keeps the completions closed, which Enter would take.
	c.write(expression + " ")
	c.key(kb.Enter)
	c.poll(expression, func() (bool, string) {
		all := c.texts(".console-user-command-result, .console-error-level")
		if len(all) <= before {
			return false, strings.Join(c.texts(".console-message-wrapper"), "\n")
		}
		last := all[len(all)-1]
		return containsAll(last, want), last
	})
}

// clear empties the prompt.
func (c *goConsole) clear() {
	c.t.Helper()
	c.do(chromedp.KeyEvent("a", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	c.key(kb.Backspace)
}

// TestGoConsole is a person who looks into a Go program from the Console.
func TestGoConsole(t *testing.T) {
	c := startGoConsole(t)
	c.run("depot.Parcels[7].Weight * 2", "7")
	c.run("depot", "Depot")
	c.run("depot.Parcels[7]", "Parcel", "House 7")
	c.run("Object.values(depot.Parcels).filter(p => p.Weight > 4).map(p => p.To)", "House 9", "House 11")
	c.run("depot.Failure", "load depot: open /var/depot", "Caused by")
	c.run("depot.Parcels[7].Send('x', 1000)", "too heavy")
	c.run("depot.Routes", "map[e2e.Stop]string(2)")
	c.run("let a = 1")
	c.run("let a = await Promise.resolve(41); a + 1", "42")
	c.run("depot.Long", "(1000000)")
	c.settle()
	c.screenshot("go-console")

	// What is typed is completed, with methods, and evaluated ahead where that changes nothing.
	c.clearConsole()
	c.write("depot.Parcels[7].")
	c.key("S")
	c.waitText(".cm-tooltip-autocomplete li", "Send")
	c.waitText(".cm-tooltip-autocomplete li", "State")
	c.settle()
	c.screenshot("go-completion")
	c.key(kb.Escape)
	c.clear()
	c.write("depot.Parcels[7].Tags.length + 40")
	c.waitText(".console-eager-preview", "42")
	c.clear()

	// A long list opens in ranges, and a range in elements.
	c.run("depot.Long", "(1000000)")
	c.click(".object-properties-section-root-element", "(1000000)")
	c.waitText("li", "[990000 … 999999]")
	c.click("li", "=[0 … 9999]")
	c.waitText("li", "[9900 … 9999]")
	// What the program's own console says is shown as every other line of it.
	c.run("console.warn('seen', depot.Parcels[3].To)")
	c.waitText(".console-warning-level", "seen House 3")
	c.run("depot.Parcels[3].Send('North', 3); depot.Parcels[3].To", "North")
	c.settle()
	c.screenshot("go-expanded")
	c.noErrors()
}

// clearConsole takes away what was said so far.
func (c *goConsole) clearConsole() {
	c.t.Helper()
	c.do(chromedp.KeyEvent("l", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
}
