package js

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dop251/goja"
)

// class is what kind of object something is, how its class is named, and its description.
type class struct{ subtype, name, text string }

// quietly runs what may run code of a page: a getter that throws, say.
func quietly(f func()) {
	defer func() { _ = recover() }()
	f()
}

// classify says what an object of JavaScript itself is.
func (e *Engine) classify(o *goja.Object) class {
	switch x := inner(o).(type) {
	case *goja.Promise:
		return class{"promise", "Promise", "Promise"}
	case goja.Proxy:
		of := "Object"
		if t := x.Target(); t != nil && valueOf(t) == nil {
			of = e.classify(t).name
		}
		return class{"proxy", "Object", "Proxy(" + of + ")"}
	case goja.ArrayBuffer:
		return class{"arraybuffer", "ArrayBuffer", fmt.Sprintf("ArrayBuffer(%d)", len(x.Bytes()))}
	}
	name, kind := e.constructorName(o), o.ClassName()
	if kind == "Object" && o.Prototype() != nil && o.Prototype() != e.objectProto {
		if b, err := e.brand(goja.Undefined(), o); err == nil && b.String() != "" {
			kind = b.String()
		}
	}
	named := name
	if named == "" {
		named = kind
	}
	size := func(prop string) string {
		n := "0"
		quietly(func() { n = o.Get(prop).String() })
		return named + "(" + n + ")"
	}
	switch kind {
	case "Array":
		return class{"array", named, size("length")}
	case "Date", "RegExp":
		text := kind
		quietly(func() { text = o.String() })
		return class{strings.ToLower(kind), named, text}
	case "Error":
		return class{"error", named, e.errorText(o)}
	case "Map", "Set":
		return class{strings.ToLower(kind), named, size("size")}
	case "WeakMap", "WeakSet":
		return class{strings.ToLower(kind), named, named}
	case "Generator":
		return class{"generator", kind, "Object [Generator]"}
	}
	if strings.HasSuffix(name, "Array") && e.own(o.Prototype(), "BYTES_PER_ELEMENT") {
		return class{"typedarray", name, size("length")}
	}
	return class{"", named, named}
}

// constructorName is the name of the function that made an object.
func (e *Engine) constructorName(o *goja.Object) (name string) {
	quietly(func() {
		for p, n := o, 0; p != nil && n < 100; p, n = p.Prototype(), n+1 {
			d := e.descriptorOf(p, e.vm.ToValue("constructor"))
			if d == nil {
				continue
			}
			c, ok := d.Get("value").(*goja.Object)
			if !ok {
				return
			}
			if nd := e.descriptorOf(c, e.vm.ToValue("name")); nd != nil && nd.Get("value") != nil {
				name, _ = nd.Get("value").Export().(string)
			}
			return
		}
	})
	return name
}

// own reports whether an object has a property of its own.
func (e *Engine) own(o *goja.Object, key string) bool {
	return o != nil && e.descriptorOf(o, e.vm.ToValue(key)) != nil
}

// descriptorOf is Reflect.getOwnPropertyDescriptor; nil if there is no such property.
func (e *Engine) descriptorOf(o *goja.Object, key goja.Value) *goja.Object {
	d, err := e.descriptor(goja.Undefined(), o, key)
	if err != nil {
		return nil
	}
	out, _ := d.(*goja.Object)
	return out
}

// errorText is the stack of an error in V8's form, or its message.
func (e *Engine) errorText(o *goja.Object) (text string) {
	quietly(func() { text = o.String() })
	head := text
	quietly(func() {
		d := e.descriptorOf(o, e.vm.ToValue("stack"))
		if d == nil {
			return
		}
		s := d.Get("value")
		if s == nil || goja.IsUndefined(s) {
			s = o.Get("stack")
		}
		if st := stackText(s.String()); st != "" {
			text = st
		}
	})
	if !strings.HasPrefix(text, head) {
		// The message was set after the stack was taken.
		if i := strings.Index(text, "\n    at "); i >= 0 {
			text = head + text[i:]
		} else {
			text = head
		}
	}
	return text
}

// stackText makes the engine's "\tat f (x.js:1:2(3))" V8's "    at f (x.js:1:2)".
func stackText(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	out := lines[:0]
	for _, l := range lines {
		if rest, ok := strings.CutPrefix(l, "\tat "); ok {
			if strings.Contains(rest, "natscope:") {
				continue
			}
			l = "    at " + withoutPC(rest)
		}
		out = append(out, l)
	}
	return strings.Join(out, "\n")
}

// withoutPC takes the number of the instruction off the end of a place.
func withoutPC(s string) string {
	body, named := strings.CutSuffix(s, "))")
	if named {
		body += ")"
	}
	if i := strings.LastIndexByte(body, '('); i > 0 && strings.HasSuffix(body, ")") {
		if _, err := strconv.Atoi(body[i+1 : len(body)-1]); err == nil {
			body = body[:i]
		}
	}
	if named {
		body += ")"
	}
	return body
}
