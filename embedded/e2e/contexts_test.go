package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/natscope/natscope/embedded"
	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/producer/goreal"
)

// startProgram begins a run of a Go program with a value of its own; end ends it.
func startProgram(t *testing.T, i *embedded.Instance, name string, value any) (end func()) {
	t.Helper()
	p, err := producer.Start(producer.Options{URL: i.NATS(), Service: name, Instance: "1", Name: name})
	if err != nil {
		t.Fatal(err)
	}
	if err := goreal.New(p, goreal.Options{}).Expose("app", value, goreal.Immutable); err != nil {
		t.Fatal(err)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
	}
}

// choose chooses a context in the list at the top of the Console.
func (c *goConsole) choose(name string) {
	c.t.Helper()
	const button, items = ".console-main-toolbar .soft-dropdown", ".item-list[role=menu] .item"
	c.poll("the context "+name, func() (bool, string) {
		if shown := strings.Join(c.texts(button), " "); strings.Contains(shown, name) {
			return true, ""
		}
		c.click(button, "")
		c.settle()
		seen := c.texts(items)
		for range seen {
			if c.highlighted(items) == name {
				c.key(kb.Enter)
				c.settle()
				return false, "chosen"
			}
			c.key(kb.ArrowDown)
		}
		c.key(kb.Escape)
		return false, strings.Join(seen, "\n")
	})
}

// highlighted is the title of the highlighted item of a list.
func (c *goConsole) highlighted(items string) string {
	return eval[string](c.page, js("(e => e ? ns.text(e.querySelector('.title') ?? e) : '')(ns.all("+quote(items)+").find(e => e.className.includes('highlighted')))"))
}

// TestContextsOfTwoPrograms is a person who asks two Go programs in one Console,
// of which one is restarted meanwhile.
func TestContextsOfTwoPrograms(t *testing.T) {
	i, err := embedded.Start(t.Context(), embedded.Options{HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := i.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	type App struct {
		Name string
		Run  int
	}
	endFirst := startProgram(t, i, "billing", &App{"billing", 1})
	defer func() { endFirst() }()
	defer startProgram(t, i, "orders", &App{"orders", 1})()

	c := &goConsole{}
	c.devtools = openDevTools(t, browser(t), i.DevTools())
	c.panel("console")
	c.waitFor("the prompt", ".cm-content")
	c.waitText(".console-main-toolbar .title, .soft-dropdown .title", "dev")
	c.settle()
	c.settle()

	// The space as a whole is no program: the person is told what to do.
	c.write("1 + 1 ")
	c.key(kb.Enter)
	c.waitText(".console-message-wrapper", "Choose one in the list of contexts", "billing", "orders")
	c.choose("orders")
	c.run("app.Name", "orders")
	c.run("app", "App")
	c.choose("billing")
	c.run("app.Name", "billing")
	c.run("let kept = app.Run; kept", "1")
	c.run("kept + 1", "2")
	// A completion comes from the program.
	c.write("app.")
	c.key("N")
	c.waitText(".cm-tooltip-autocomplete li", "Name")
	c.key(kb.Escape)
	c.clear()
	// Input over several lines: Enter does not end what is not complete.
	c.write("[1, 2].map(x => {")
	c.key(kb.Enter)
	c.settle()
	if n := len(c.texts(".console-user-command-result")); n == 0 || strings.Contains(strings.Join(c.texts(".console-message-wrapper"), "\n"), "Unexpected end of input") {
		t.Errorf("incomplete input was evaluated: %q", c.texts(".console-message-wrapper"))
	}
	c.clear()
	c.settle()
	c.screenshot("contexts")

	// The program is restarted: its context is another one, of the same name, and what was held is gone.
	endFirst()
	endFirst = startProgram(t, i, "billing", &App{"billing", 2})
	c.choose("orders")
	c.choose("billing")
	c.run("app.Run", "2")
	c.run("typeof kept", "undefined")
	c.noErrors()
}
