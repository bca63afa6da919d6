package slogcap

import (
	"context"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/natscope/natscope/producer"
	"github.com/natscope/natscope/subjects/console"
)

// kept is a Keeper for tests.
type kept struct {
	calls [][]any
	panic bool
}

func (k *kept) Keep(args ...any) console.Ref {
	if k.panic {
		panic("no")
	}
	k.calls = append(k.calls, args)
	return console.Ref(len(k.calls))
}

func TestLiveAttributes(t *testing.T) {
	k := &kept{}
	order := &struct{ ID int }{7}
	log, out := collect(Options{Live: k}, nil)
	log = log.With("base", order).WithGroup("g").With("in", 1)
	log.Info("plain text", "order", order, slog.Group("sub", "x", 2), "password", secret{})
	log.Info("100%", "a", order)
	slog.New(log.Handler()).WithGroup("h").Info("nothing")
	collected := *out
	if collected[0].Ref != 1 || collected[1].Ref != 2 {
		t.Errorf("%d, %d", collected[0].Ref, collected[1].Ref)
	}
	want := Attrs{"base": order, "g": Attrs{"in": int64(1), "order": order, "sub": Attrs{"x": int64(2)}, "password": "redacted"}}
	if got := k.calls[0]; len(got) != len(collected[0].Args) || got[0] != "plain text" || !reflect.DeepEqual(got[1], want) {
		t.Errorf("%+v", got)
	}
	if got := k.calls[1]; len(got) != 3 || len(collected[1].Args) != 3 || got[1] != "100%" {
		t.Errorf("%+v for %s", got, collected[1].Args)
	}
	k.panic = true
	log.Info("still", "a", 1)
	if last := (*out)[len(*out)-1]; last.Ref != 0 || len(last.Args) != 2 {
		t.Errorf("%+v", last)
	}
}

// A line that is logged with the context of a request belongs to it.
func TestLinesBelongToTheirRequest(t *testing.T) {
	var got console.Message
	log := slog.New(newHandler(func(_ time.Time, m console.Message) { got = m }, nil, Options{}))
	ctx := producer.InRequest(context.Background(), "r1", "00-1-2-01")
	log.InfoContext(ctx, "in")
	if got.Request != "r1" || got.Trace != "00-1-2-01" {
		t.Errorf("%+v", got)
	}
	log.Info("out")
	if got.Request != "" || got.Trace != "" {
		t.Errorf("%+v", got)
	}
}
