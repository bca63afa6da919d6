package bodyview

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// encoders make encoded bodies with the writers of the libraries.
var encoders = map[string]func(io.Writer) io.WriteCloser{
	"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"raw deflate": func(w io.Writer) io.WriteCloser {
		f, err := flate.NewWriter(w, flate.BestSpeed)
		if err != nil {
			panic(err)
		}
		return f
	},
	"br": func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
	"zstd": func(w io.Writer) io.WriteCloser {
		z, err := zstd.NewWriter(w)
		if err != nil {
			panic(err)
		}
		return z
	},
}

func encode(t testing.TB, name string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := encoders[name](&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func wire(name string) string { return strings.TrimPrefix(name, "raw ") }

func TestDecode(t *testing.T) {
	plain := []byte(strings.Repeat("{\"price\":\"12 €\"},", 5000))
	for name := range encoders {
		coded := encode(t, name, plain)
		v, err := Decode([]string{" " + strings.ToUpper(wire(name)) + " "}, coded, false, 0)
		if err != nil || v.Truncated || !bytes.Equal(v.Data, plain) {
			t.Errorf("%s: %d bytes, truncated %t, %v", name, len(v.Data), v.Truncated, err)
		}
		half, err := Decode([]string{wire(name)}, coded[:len(coded)/2], true, 0)
		if err != nil || !half.Truncated || !bytes.HasPrefix(plain, half.Data) {
			t.Errorf("%s, cut: %d bytes, truncated %t, %v", name, len(half.Data), half.Truncated, err)
		}
		broken, err := Decode([]string{wire(name)}, coded[:len(coded)/2], false, 0)
		if !errors.Is(err, ErrCorrupt) || !broken.Truncated || !bytes.HasPrefix(plain, broken.Data) {
			t.Errorf("%s, broken: %d bytes, truncated %t, %v", name, len(broken.Data), broken.Truncated, err)
		}
		short, err := Decode([]string{wire(name)}, coded, false, 1000)
		if err != nil || !short.Truncated || !bytes.Equal(short.Data, plain[:1000]) {
			t.Errorf("%s, limited: %d bytes, truncated %t, %v", name, len(short.Data), short.Truncated, err)
		}
		if _, err := Decode([]string{wire(name)}, []byte("this is not encoded"), false, 0); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s of plain text: %v", name, err)
		}
	}
}

func TestDecodeLists(t *testing.T) {
	plain := []byte("hello")
	twice := encode(t, "br", encode(t, "gzip", plain))
	for _, values := range [][]string{{"gzip, br"}, {"gzip", "br"}, {"identity, x-gzip,,br"}} {
		if v, err := Decode(values, twice, false, 0); err != nil || string(v.Data) != "hello" {
			t.Errorf("%q: %q, %v", values, v.Data, err)
		}
	}
	for _, values := range [][]string{nil, {""}, {"identity"}} {
		if v, err := Decode(values, plain, true, 1); err != nil || string(v.Data) != "hello" || !v.Truncated {
			t.Errorf("%q: %+v, %v", values, v, err)
		}
	}
	if v, err := Decode([]string{"gzip"}, nil, false, 0); err != nil || v.Truncated {
		t.Errorf("no bytes: %+v, %v", v, err)
	}
	for _, values := range [][]string{{"compress"}, {"gzip,gzip,gzip,gzip,gzip"}} {
		if v, err := Decode(values, plain, false, 0); !errors.Is(err, ErrEncoding) || string(v.Data) != "hello" {
			t.Errorf("%q: %q, %v", values, v.Data, err)
		}
	}
}

// TestBombs decodes bodies that inflate ten thousandfold and looks at what that takes.
func TestBombs(t *testing.T) {
	const limit = 1 << 20
	zeros := make([]byte, 256<<20)
	for _, name := range []string{"gzip", "deflate", "br", "zstd"} {
		bomb := encode(t, name, zeros)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		v, err := Decode([]string{name}, bomb, false, limit)
		runtime.ReadMemStats(&after)
		if err != nil || !v.Truncated || len(v.Data) != limit {
			t.Errorf("%s: %d bytes, truncated %t, %v", name, len(v.Data), v.Truncated, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 48<<20 {
			t.Errorf("%s: decoding 1 MiB of a bomb of %d bytes allocated %d MiB", name, len(bomb), took>>20)
		}
	}
}

func TestText(t *testing.T) {
	euro := []byte("12 €")
	for name, c := range map[string]struct {
		data   []byte
		cut    bool
		want   string
		base64 bool
	}{
		"text":                   {data: euro, want: "12 €"},
		"empty":                  {},
		"latin-1":                {data: []byte("caf\xe9"), base64: true},
		"utf-16":                 {data: []byte("\xff\xfeh\x00i\x00"), base64: true},
		"png":                    {data: []byte("\x89PNG\r\n\x1a\n"), base64: true},
		"cut after one byte":     {data: euro[:4], cut: true, want: "12 "},
		"cut after two bytes":    {data: euro[:5], cut: true, want: "12 "},
		"cut, but not in a rune": {data: euro, cut: true, want: "12 €"},
		"broken, not cut":        {data: euro[:5], base64: true},
		"bytes that were cut":    {data: []byte("\x89PNG\xe2\x82"), cut: true, base64: true},
		"a cut of four bytes":    {data: []byte("x\xf0\x9f\x98"), cut: true, want: "x"},
	} {
		s, is64 := Text(c.data, c.cut)
		want := c.want
		if c.base64 {
			want = base64.StdEncoding.EncodeToString(c.data)
		}
		if s != want || is64 != c.base64 {
			t.Errorf("%s: %q, base64 %t", name, s, is64)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for name := range encoders {
		f.Add(wire(name), encode(f, name, []byte(strings.Repeat("hello ", 50))), true)
	}
	f.Add("gzip, br", []byte("x"), false)
	f.Fuzz(func(t *testing.T, encoding string, data []byte, cut bool) {
		const limit = 1 << 16
		v, err := Decode([]string{encoding}, data, cut, limit)
		if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrEncoding) {
			t.Fatal(err)
		}
		if len(v.Data) > max(limit, len(data)) {
			t.Fatalf("%d bytes", len(v.Data))
		}
		s, is64 := Text(v.Data, v.Truncated)
		if is64 {
			if back, err := base64.StdEncoding.DecodeString(s); err != nil || !bytes.Equal(back, v.Data) {
				t.Fatal("base64 changed the bytes")
			}
		} else if !strings.HasPrefix(string(v.Data), s) || len(v.Data)-len(s) > 3 {
			t.Fatal("text changed the bytes")
		}
	})
}
