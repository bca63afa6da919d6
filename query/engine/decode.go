package engine

import (
	"errors"
	"mime"
	"strings"

	"golang.org/x/net/html/charset"

	"github.com/natscope/natscope/store/bodyview"
	"github.com/natscope/natscope/subjects/network"
)

// describe takes from headers how a body is to be read.
func (b *bodyOf) describe(h []network.Header) {
	for _, x := range h {
		switch strings.ToLower(x[0]) {
		case "content-type":
			if t, params, err := mime.ParseMediaType(x[1]); err == nil {
				if b.mime == "" {
					b.mime = t
				}
				if b.charset == "" {
					b.charset = params["charset"]
				}
			}
		case "content-encoding":
			b.codings = append(b.codings, x[1])
		}
	}
}

// decode makes a body readable: it undoes compression and turns other charsets
// into UTF-8. It returns what it did in words, empty for nothing. What does not
// decode stays as it is: clients that decompress for the program record what the
// program read, beside headers that speak of what came.
func (b *bodyOf) decode(data []byte, cut bool) ([]byte, string) {
	var did []string
	if len(b.codings) > 0 && len(data) > 0 {
		view, err := bodyview.Decode(b.codings, data, cut, 0)
		if err == nil || errors.Is(err, bodyview.ErrCorrupt) && len(view.Data) > 0 {
			data, did = view.Data, append(did, strings.ToLower(strings.Join(b.codings, ", ")))
		}
	}
	name := strings.ToLower(b.charset)
	if name == "" || name == "utf-8" || name == "us-ascii" {
		return data, strings.Join(did, ", ")
	}
	if enc, _ := charset.Lookup(name); enc != nil {
		if out, err := enc.NewDecoder().Bytes(data); err == nil {
			data, did = out, append(did, name)
		}
	}
	return data, strings.Join(did, ", ")
}
