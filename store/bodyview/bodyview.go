// Package bodyview turns the bytes of a captured body into what a person reads:
// it undoes the content encodings (gzip, deflate, br, zstd) and says whether the
// bytes are text.
//
// It owns: the bounds of decoding, so that a body that inflates without end costs
// no more than its limit, and the rule for text and bytes. It must not know:
// where bodies are stored, CDP, HAR, NATS. It starts no goroutine.
//
// The stream holds bodies as they went over the wire; decoding is left to the
// reader, who may be one in a hundred, and not to the program that is watched.
package bodyview

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

const (
	// DefaultLimit is the most bytes that a body decodes to where the caller sets no limit. 64 MiB.
	DefaultLimit = 64 << 20
	// maxEncodings is how many encodings of one body are undone. Servers use one, rarely two.
	maxEncodings = 4
	// maxWindow bounds the memory of a decoder in bytes; browsers refuse larger windows of zstd, too.
	maxWindow = 8 << 20
)

var (
	// ErrEncoding says that a body has an encoding that is not known here.
	ErrEncoding = errors.New("bodyview: unknown content encoding")
	// ErrCorrupt says that a body is not what its encoding says.
	ErrCorrupt = errors.New("bodyview: the body does not decode")
)

// View is a decoded body.
type View struct {
	// Data is the decoded body, or as much of it as could be decoded.
	Data []byte
	// Truncated says that Data is only the beginning: the limit was hit, or the encoded bytes ended early.
	Truncated bool
}

// Decode undoes the encodings that the values of the Content-Encoding headers
// list, last first. data is the body, or its beginning if cut is set. limit
// bounds the decoded bytes of each step; zero or less means DefaultLimit. Data
// that needs no decoding is returned as it is, whatever its size.
//
// With an error, which wraps ErrEncoding or ErrCorrupt, the view holds what could
// be decoded; that is data itself when the encoding is unknown.
func Decode(contentEncoding []string, data []byte, cut bool, limit int64) (View, error) {
	v := View{Data: data, Truncated: cut}
	names := encodings(contentEncoding)
	if len(names) > maxEncodings {
		return v, fmt.Errorf("%w: %d encodings of one body, at most %d are undone", ErrEncoding, len(names), maxEncodings)
	}
	if limit <= 0 {
		limit = DefaultLimit
	}
	for i := len(names) - 1; i >= 0; i-- {
		if len(v.Data) == 0 {
			return v, nil // answers to HEAD, 204 and 304 name an encoding and have no bytes
		}
		next, err := step(names[i], v, limit)
		if errors.Is(err, ErrEncoding) {
			return v, err
		}
		v = next
		if err != nil {
			return v, err
		}
	}
	return v, nil
}

// encodings lists the encodings of a body in the order in which they were applied.
func encodings(values []string) (names []string) {
	for _, value := range values {
		for name := range strings.SplitSeq(value, ",") {
			if name = strings.ToLower(strings.TrimSpace(name)); name != "" && name != "identity" {
				names = append(names, name)
			}
		}
	}
	return names
}

// step undoes one encoding.
func step(name string, v View, limit int64) (View, error) {
	r, closeReader, err := open(name, v.Data)
	if errors.Is(err, ErrEncoding) {
		return v, err
	}
	var out bytes.Buffer
	if err == nil {
		defer closeReader()
		_, err = io.Copy(&out, io.LimitReader(r, limit+1))
	}
	next := View{Data: out.Bytes(), Truncated: v.Truncated}
	switch {
	case int64(len(next.Data)) > limit:
		next.Data, next.Truncated = next.Data[:limit], true
		return next, nil
	case err == nil:
		return next, nil
	case v.Truncated:
		// The end of the encoded bytes is missing: what came out so far is all there is.
		return next, nil
	}
	next.Truncated = true
	return next, fmt.Errorf("%w: %s: %w", ErrCorrupt, name, err)
}

// open starts a decoder.
func open(name string, data []byte) (io.Reader, func(), error) {
	src := bytes.NewReader(data)
	switch name {
	case "gzip", "x-gzip":
		r, err := gzip.NewReader(src)
		if err != nil {
			return nil, nil, err
		}
		return r, func() { _ = r.Close() }, nil
	case "deflate":
		return inflate(src)
	case "br":
		return brotli.NewReader(src), func() {}, nil
	case "zstd":
		r, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, err
		}
		return r, r.Close, nil
	}
	return nil, nil, fmt.Errorf("%w: %.40q", ErrEncoding, name)
}

// inflate reads deflate as browsers do: with the header of zlib, as the standard
// says, or without it, as some servers send it.
func inflate(src *bytes.Reader) (io.Reader, func(), error) {
	br := bufio.NewReader(src)
	head, _ := br.Peek(2)
	if len(head) == 2 && head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
		r, err := zlib.NewReader(br)
		if err != nil {
			return nil, nil, err
		}
		return r, func() { _ = r.Close() }, nil
	}
	r := flate.NewReader(br)
	return r, func() { _ = r.Close() }, nil
}

// Text returns data as a string, or as base64 if it is not UTF-8, whatever its
// media type says. Of a body that was cut, the bytes of a character that the cut
// went through are left out of the text: they must not make bytes of it.
func Text(data []byte, cut bool) (s string, isBase64 bool) {
	if cut {
		data = wholeRunes(data)
	}
	if utf8.Valid(data) {
		return string(data), false
	}
	return base64.StdEncoding.EncodeToString(data), true
}

// wholeRunes leaves out the beginning of a character at the end of text; other bytes stay as they are.
func wholeRunes(data []byte) []byte {
	for back := 1; back < utf8.UTFMax && back <= len(data); back++ {
		at := len(data) - back
		if !utf8.RuneStart(data[at]) {
			continue
		}
		if !utf8.FullRune(data[at:]) && utf8.Valid(data[:at]) {
			return data[:at]
		}
		return data
	}
	return data
}
