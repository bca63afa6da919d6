package cdpgw

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects/tree"
)

// attributes returns names and values in turn.
func (s *session) attributes(n node) []string {
	switch n.place {
	case placeWorkspace:
		return []string{"name", string(s.target.space)}
	case placeSource:
		return sourceAttributes(n.source)
	case placeTree:
		return treeAttributes(n.entry.Name, n.entry.Kind, n.entry.Attrs)
	}
	return nil
}

func sourceAttributes(src *fold.Source) []string {
	d := src.Life.Descriptor
	out := []string{"name", src.Name()}
	if string(src.ID) != src.Name() {
		out = append(out, "id", string(src.ID))
	}
	if d.URL != "" {
		out = append(out, "url", d.URL)
	}
	if !src.Connected {
		out = append(out, "state", "disconnected")
	}
	if src.Tree.Truncated {
		// Nobody should take what is shown for all that there is.
		out = append(out, "truncated", "true")
	}
	return out
}

// treeAttributes returns a node's own attributes, before them its true name and
// its kind where the element's name does not say them.
func treeAttributes(component, kind string, attrs []tree.Attr) []string {
	out := make([]string, 0, 2*len(attrs)+4)
	has := func(name string) int {
		for i := 0; i < len(out); i += 2 {
			if out[i] == name {
				return i
			}
		}
		return -1
	}
	for _, a := range attrs {
		name := attributeName(a.Name)
		if i := has(name); i >= 0 {
			out[i+1] = a.Value
			continue
		}
		out = append(out, name, a.Value)
	}
	if kind != "" && !strings.EqualFold(kind, component) && has("kind") < 0 {
		out = append([]string{"kind", kind}, out...)
	}
	if elementName(component) != component {
		name := "name"
		if has(name) >= 0 {
			name = "component"
		}
		if has(name) < 0 {
			out = append([]string{name, component}, out...)
		}
	}
	return out
}

// maxElementName is how many characters of a component's name become its element's name.
const maxElementName = 100

// specialElements are names that DevTools treats in ways of its own: frames,
// documents, scripts, shadow trees, elements without a closing tag, badges.
var specialElements = map[string]bool{
	"html": true, "head": true, "body": true, "iframe": true, "frame": true, "object": true, "embed": true, "fencedframe": true, "portal": true,
	"script": true, "style": true, "template": true, "slot": true, "title": true, "noscript": true, "dialog": true, "video": true, "audio": true,
	"area": true, "base": true, "basefont": true, "br": true, "canvas": true, "col": true, "command": true, "hr": true, "img": true, "input": true,
	"keygen": true, "link": true, "menuitem": true, "meta": true, "param": true, "source": true, "track": true, "wbr": true, "selectedcontent": true,
}

// elementName turns a component's name into one that DevTools shows as an
// ordinary element: letters, digits, "_", "$", "." and ":" stay, everything else
// becomes "_", and names with a meaning of their own get a "_" behind them.
func elementName(name string) string {
	if plainName(name) {
		return name
	}
	var b strings.Builder
	for i, r := range name {
		if b.Len() >= maxElementName {
			break
		}
		ok := r == '_' || r == '$' || unicode.IsLetter(r) && r != utf8.RuneError
		if i > 0 {
			ok = ok || r == '.' || r == ':' || unicode.IsDigit(r)
		} else if unicode.IsDigit(r) {
			b.WriteByte('_')
			ok = true
		}
		if ok {
			b.WriteRune(r)
		} else {
			b.WriteByte('_')
		}
	}
	out := b.String()
	if specialElements[strings.ToLower(out)] {
		out += "_"
	}
	return or(out, "_")
}

// plainName reports whether a name needs no change, which nearly all do not.
func plainName(name string) bool {
	if name == "" || len(name) > maxElementName {
		return false
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		letter := c == '_' || c == '$' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c != '.' && c != ':' && (c < '0' || c > '9')) {
			return false
		}
	}
	var low [len("selectedcontent")]byte
	if len(name) > len(low) {
		return true
	}
	for i := 0; i < len(name); i++ {
		low[i] = name[i]
		if 'A' <= name[i] && name[i] <= 'Z' {
			low[i] += 'a' - 'A'
		}
	}
	return !specialElements[string(low[:len(name)])]
}

// attributeName replaces what would end an attribute's name in markup, and what nobody sees.
func attributeName(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \"'<>/=", r) || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return '_'
		}
		return r
	}, name)
}
