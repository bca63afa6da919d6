package ingest

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/natscope/natscope/producer/internal/natstest"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/console"
)

// duration is what differs between two clocks.
var duration = regexp.MustCompile(`: [0-9.e-]+ ms`)

// TestConsoleIsAsChromeTellsIt calls every method of the console in every way, and
// compares what Chrome tells its own DevTools with what natscope publishes.
func TestConsoleIsAsChromeTellsIt(t *testing.T) {
	r := newRig(t)
	app := r.app(r.script())
	ctx := tab(t)
	id := r.open(ctx, app.URL+"/")
	var mu sync.Mutex
	var chrome []string
	err := chromedp.Listen(ctx, func(ev any) {
		e, ok := ev.(*runtime.EventConsoleAPICalled)
		if !ok {
			return
		}
		line := []string{string(e.Type)}
		for _, a := range e.Args {
			text := string(a.Value)
			if a.Type == "object" && a.Subtype != "null" {
				text = "object"
			} else if a.Type == "undefined" {
				text = `{"__natscope":"undefined"}`
			}
			line = append(line, duration.ReplaceAllString(text, ": N ms"))
		}
		mu.Lock()
		defer mu.Unlock()
		chrome = append(chrome, strings.Join(line, " "))
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, ctx, `
		console.log(); console.log('a', 1, null, undefined); console.debug('d'); console.info('i'); console.warn('w'); console.error('e'); console.error();
		console.dir({ a: 1 }, { depth: 1 }); console.dirxml(document.body); console.dir();
		console.table([{ a: 1 }]); console.table([{ a: 1, b: 2 }], ['b']); console.table(5); console.table();
		console.trace(); console.trace('t', 1);
		console.group(); console.group('g', 1); console.groupCollapsed(); console.groupCollapsed('c'); console.groupEnd(); console.groupEnd('x'); console.groupEnd(); console.groupEnd();
		console.assert(true, 'no'); console.assert(false); console.assert(false, 'yes', 1); console.assert(); console.assert(0, '%s is', 'x');
		console.count(); console.count('x'); console.count('x'); console.countReset('x'); console.count('x'); console.countReset('none');
		console.count(undefined); console.count(null); console.count({}); console.countReset();
		console.time('t'); console.time('t'); console.timeLog('t'); console.timeLog('t', 'more', 2); console.timeEnd('t'); console.timeEnd('t'); console.timeLog('gone'); console.timeEnd();
		console.clear();
		console.log('the last');
	`, nil)
	var ours []string
	r.until("the last message", func(s *fold.Space) bool {
		src := s.Source(subjects.SourceID(id))
		ours = nil
		// A clear ends what was before it for readers, so the records themselves are read.
		for _, m := range r.nats.Read(subjects.RecordStreamName(space)) {
			name, err := subjects.ParseRecord(m.Subject)
			if err != nil || name.Plane != subjects.PlaneConsole {
				continue
			}
			frame, err := subjects.DecodeFrame(subjects.Header(m.Header), m.Data)
			if err != nil {
				t.Fatal(err)
			}
			for _, rec := range frame.Records {
				var said console.Message
				if err := json.Unmarshal(rec.Data, &said); err != nil {
					t.Fatal(err)
				}
				line := []string{said.Type}
				if said.Type == "table" {
					said.Args = said.Args[:1] // Chrome applies the names of columns; here the gateway does.
				}
				for _, a := range said.Args {
					text := string(a)
					if (text[0] == '{' && !strings.Contains(text, `:"undefined"`)) || text[0] == '[' {
						text = "object"
					}
					line = append(line, duration.ReplaceAllString(text, ": N ms"))
				}
				ours = append(ours, strings.Join(line, " "))
			}
		}
		return src != nil && slices.Contains(ours, `log "the last"`)
	})
	natstest.Until(t, "Chrome tells the last message", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Contains(chrome, `log "the last"`)
	})
	if len(chrome) < 40 || !slices.Equal(chrome, ours) {
		t.Errorf("Chrome tells\n%s\nand natscope\n%s", strings.Join(chrome, "\n"), strings.Join(ours, "\n"))
	}
}
