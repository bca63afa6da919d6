package slogcap

import (
	"log/slog"

	"github.com/natscope/natscope/subjects/value"
)

// maxGroups is how deeply groups inside of attributes are shown open; below, they are shown closed.
const maxGroups = 8

// appendAttrs appends attributes as fields.
func appendAttrs(fields []value.Field, attrs []slog.Attr) []value.Field {
	for _, a := range attrs {
		fields = appendAttr(fields, a)
	}
	return unique(fields)
}

// appendAttr appends one attribute by the rules of slog: empty attributes and
// empty groups stay out, a group without a name is part of what is around it.
func appendAttr(fields []value.Field, a slog.Attr) []value.Field {
	return appendNested(fields, a, maxGroups)
}

func appendNested(fields []value.Field, a slog.Attr, depth int) []value.Field {
	v := a.Value.Resolve() // A LogValuer that panics becomes an error.
	a.Value = v
	if a.Equal(slog.Attr{}) {
		return fields
	}
	if v.Kind() != slog.KindGroup {
		return append(fields, value.Field{Name: a.Key, Value: value.Of(v.Any())})
	}
	if depth == 0 {
		return append(fields, value.Field{Name: a.Key, Value: value.Value{Kind: value.Dehydrated, Name: "object", Text: "{…}", Size: len(v.Group()), Opaque: true}})
	}
	inner := fields
	if a.Key != "" {
		inner = nil
	}
	for _, g := range v.Group() {
		inner = appendNested(inner, g, depth-1)
	}
	if a.Key == "" {
		return inner
	}
	if len(inner) == 0 {
		return fields
	}
	return append(fields, value.Field{Name: a.Key, Value: object(unique(inner))})
}
