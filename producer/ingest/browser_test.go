package ingest

import (
	"context"
	"testing"
	"time"

	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// duplicate opens a copy of a tab as a browser does: same session storage.
func duplicate(t *testing.T, ctx context.Context) context.Context {
	t.Helper()
	targets := chromedp.WaitNewTarget(ctx, func(i *target.Info) bool { return i.Type == "page" })
	run(t, ctx, `open(location.href)`, nil)
	select {
	case id := <-targets:
		copied, cancel := chromedp.NewContext(ctx, chromedp.WithTargetID(id))
		t.Cleanup(cancel)
		return copied
	case <-time.After(20 * time.Second):
		t.Fatal("the copy did not open")
		return nil
	}
}
