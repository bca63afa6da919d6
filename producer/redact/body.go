package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"regexp"
	"strings"
)

// InBodies reports whether there are rules that look into bodies, so that a body
// must be known whole before any of it is told.
func (r *Redactor) InBodies() bool {
	return r != nil && len(r.patterns)+len(r.anywhere)+len(r.paths)+len(r.query) > 0
}

// media are the types that hold no text, so that no rule applies.
var media = []string{"image/", "audio/", "video/", "font/"}

// Concerns reports whether the rules look into a body of a media type. Types
// that hold no text pass as they are, save SVG, which does.
func (r *Redactor) Concerns(mediaType string) bool {
	if !r.InBodies() {
		return false
	}
	mediaType = strings.ToLower(mediaType)
	for _, m := range media {
		if strings.HasPrefix(mediaType, m) && !strings.Contains(mediaType, "svg") {
			return false
		}
	}
	return true
}

// Body returns a whole body as it may be told, and whether that differs from
// data. With ok false it cannot be checked and nothing of it may be told: JSON
// that is none, a form with a field that the rules name among files, or, told by
// encoded, a content encoding.
func (r *Redactor) Body(contentType string, encoded bool, data []byte) (out []byte, changed, ok bool) {
	mediaType, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	mediaType = strings.TrimSpace(mediaType)
	if len(data) == 0 || !r.Concerns(mediaType) {
		return data, false, true
	}
	if encoded {
		return nil, true, false
	}
	out = data
	switch {
	case mediaType == "application/x-www-form-urlencoded":
		out = []byte(r.form(string(data)))
	case strings.HasPrefix(mediaType, "multipart/"):
		if r.namesPart(data) {
			return nil, true, false
		}
	case len(r.anywhere)+len(r.paths) > 0:
		isJSON := strings.Contains(mediaType, "json")
		if first := bytes.TrimLeft(data, " \t\r\n"); !isJSON && (len(first) == 0 || first[0] != '{' && first[0] != '[') {
			break
		}
		rewritten, err := r.json(data)
		switch {
		case err == nil:
			out = rewritten
		case isJSON || bytes.TrimLeft(data, " \t\r\n")[0] == '{':
			return nil, true, false
		}
	}
	for _, p := range r.patterns {
		if p.Match(out) {
			out = p.ReplaceAllLiteral(out, []byte(Mark))
		}
	}
	return out, !bytes.Equal(out, data), true
}

// Message returns the payload of a message as it may be told. cut says that data
// is only the beginning, of which nothing may be told where rules look into bodies.
func (r *Redactor) Message(data []byte, cut bool) (out []byte, changed bool) {
	if !r.InBodies() {
		return data, false
	}
	if cut {
		return []byte(Mark), true
	}
	out, changed, ok := r.Body("", false, data)
	if !ok {
		return []byte(Mark), true
	}
	return out, changed
}

// form returns a query or form with the values of the named keys taken out; the rest is as it was written.
func (r *Redactor) form(s string) string {
	if len(r.query) == 0 {
		return s
	}
	parts := strings.Split(s, "&")
	for i, part := range parts {
		key, _, ok := strings.Cut(part, "=")
		if !ok {
			continue
		}
		name := key
		if u, err := url.QueryUnescape(key); err == nil {
			name = u
		}
		// Frameworks nest keys as user[password].
		if at := strings.LastIndexByte(name, '['); at >= 0 && strings.HasSuffix(name, "]") && !r.query[plain(name)] {
			name = name[at+1 : len(name)-1]
		}
		if r.query[plain(name)] {
			parts[i] = key + "=" + Mark
		}
	}
	return strings.Join(parts, "&")
}

var partName = regexp.MustCompile(`(?i)[;\s]name\*?="?([^";\r\n]*)`)

// namesPart reports whether a part of a multipart body has a name that the rules take out.
func (r *Redactor) namesPart(data []byte) bool {
	for _, m := range partName.FindAllSubmatch(data, -1) {
		if name := plain(string(m[1])); r.query[name] || r.anywhere[name] {
			return true
		}
	}
	return false
}

// errDepth says that JSON is nested deeper than any sensible document.
var errDepth = errors.New("redact: JSON is nested too deeply")

// maxDepth bounds the nesting of JSON that is checked.
const maxDepth = 512

// json returns a sequence of JSON values without the members that the rules name;
// all other bytes are as they were.
func (r *Redactor) json(data []byte) ([]byte, error) {
	w := jsonWalk{r: r, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	w.dec.UseNumber()
	for {
		if err := w.value(0); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
	}
	if w.done == 0 {
		return data, nil
	}
	return append(w.out, data[w.done:]...), nil
}

// jsonWalk goes through JSON with the names that lead to where it is.
type jsonWalk struct {
	r    *Redactor
	data []byte
	dec  *json.Decoder
	// path are the names of the members on the way, as they are compared.
	path []string
	// out is what was written; done counts the bytes of data that it stands for.
	out  []byte
	done int
}

// value reads one value and takes out what the rules name in it.
func (w *jsonWalk) value(depth int) error {
	if depth > maxDepth {
		return errDepth
	}
	t, err := w.dec.Token()
	if err != nil {
		return err
	}
	switch t {
	case json.Delim('['):
		for w.dec.More() {
			if err := w.value(depth + 1); err != nil {
				return unexpected(err)
			}
		}
	case json.Delim('{'):
		for w.dec.More() {
			if err := w.member(depth); err != nil {
				return unexpected(err)
			}
		}
	default:
		return nil
	}
	_, err = w.dec.Token()
	return unexpected(err)
}

func (w *jsonWalk) member(depth int) error {
	t, err := w.dec.Token()
	if err != nil {
		return err
	}
	name, _ := t.(string)
	w.path = append(w.path, plain(name))
	defer func() { w.path = w.path[:len(w.path)-1] }()
	if !w.named() {
		return w.value(depth + 1)
	}
	var raw json.RawMessage
	if err := w.dec.Decode(&raw); err != nil {
		return err
	}
	end := int(w.dec.InputOffset())
	w.out = append(w.out, w.data[w.done:end-len(raw)]...)
	w.out = append(w.out, `"`+Mark+`"`...)
	w.done = end
	return nil
}

// named reports whether the rules take out the member that the path leads to.
func (w *jsonWalk) named() bool {
	if w.r.anywhere[w.path[len(w.path)-1]] {
		return true
	}
	for _, p := range w.r.paths {
		if len(p) != len(w.path) {
			continue
		}
		match := true
		for i, n := range p {
			match = match && (n == "*" || n == w.path[i])
		}
		if match {
			return true
		}
	}
	return false
}

// unexpected makes the end of the text within a value an error.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
