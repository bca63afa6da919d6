package slogcap

import (
	"log/slog"

	"github.com/natscope/natscope/subjects/console"
)

// keep keeps the attributes of a line, in place of the last of its n arguments.
func (h *handler) keep(r slog.Record, n int) (ref console.Ref) {
	defer func() {
		// Whatever a keeper does, a line is only a line.
		if recover() != nil {
			ref = 0
		}
	}()
	own := make([]slog.Attr, 0, r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		own = append(own, a)
		return true
	})
	for i := len(h.groups); ; i-- {
		own = append(h.kept[i][:len(h.kept[i]):len(h.kept[i])], own...)
		if i == 0 {
			break
		}
		if len(own) > 0 {
			own = []slog.Attr{{Key: h.groups[i-1], Value: slog.GroupValue(own...)}}
		}
	}
	args := make([]any, n)
	if n > 0 {
		args[0], args[n-1] = r.Message, liveAttrs(own, maxGroups)
	}
	if n == 3 {
		args[0], args[1] = "%s", r.Message
	}
	return h.o.Live.Keep(args...)
}

// Attrs are the attributes of a line, live, by their keys. Nobody changes the map itself.
type Attrs map[string]any

// Immutable says that nobody changes the map: what reads values live may read it.
func (Attrs) Immutable() bool { return true }

// liveAttrs makes a map of attributes, by the rules by which they are shown.
func liveAttrs(attrs []slog.Attr, depth int) Attrs {
	out := make(Attrs, len(attrs))
	addLive(out, attrs, depth)
	return out
}

func addLive(out Attrs, attrs []slog.Attr, depth int) {
	for _, a := range attrs {
		// What says itself what is logged of it says the same here: secrets stay secret.
		v := a.Value.Resolve()
		switch {
		case a.Equal(slog.Attr{}) || v.Kind() == slog.KindGroup && (len(v.Group()) == 0 || depth == 0):
		case v.Kind() == slog.KindGroup && a.Key == "":
			addLive(out, v.Group(), depth-1)
		case v.Kind() == slog.KindGroup:
			out[a.Key] = liveAttrs(v.Group(), depth-1)
		default:
			out[a.Key] = v.Any()
		}
	}
}
