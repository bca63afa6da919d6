package httpcap

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMediaType(t *testing.T) {
	for _, c := range []struct{ in, mime, charset string }{
		{"", "", ""},
		{"text/html", "text/html", ""},
		{"Text/HTML; Charset=UTF-8", "text/html", "UTF-8"},
		{` application/json ;charset="utf-8"`, "application/json", "utf-8"},
		{"multipart/form-data; boundary=x", "multipart/form-data", ""},
		{"text/plain; charset", "text/plain", ""},
		{";;;", "", ""},
	} {
		if mime, charset := mediaType(c.in); mime != c.mime || charset != c.charset {
			t.Errorf("%q: %q %q, want %q %q", c.in, mime, charset, c.mime, c.charset)
		}
	}
}

func TestHeaderListIsOrderedAndUnmerged(t *testing.T) {
	h := http.Header{"B": {"2", "1"}, "A": {"x"}, "Set-Cookie": {"b=1", "a=2"}}
	got := headerList(nil, h, secrets{})
	var b strings.Builder
	for _, l := range got {
		b.WriteString(l[0] + "=" + l[1] + " ")
	}
	if want := "A=x B=2 B=1 Set-Cookie=b=1 Set-Cookie=a=2 "; b.String() != want {
		t.Errorf("got %s, want %s", b.String(), want)
	}
}

// FuzzRedact checks that the URL's password is in no header or URL that is recorded.
func FuzzRedact(f *testing.F) {
	f.Add("ada", "s3cret-s3cret", "/path?q=1")
	f.Add("", "päss wörd :@/", "")
	f.Add("u\xff", "p\xffp\xfep", "//")
	f.Fuzz(func(t *testing.T, user, password, path string) {
		if len(password) < 8 || strings.Contains(path, password) || strings.Contains(user, password) || strings.Contains("http://example.org xxxxx", password) {
			return // what is public anyway proves nothing
		}
		u := &url.URL{Scheme: "http", Host: "example.org", Path: path, User: url.UserPassword(user, password)}
		req := &http.Request{Header: http.Header{}}
		req.SetBasicAuth(user, password)
		req.Header.Set("Location", u.String())
		s := newSecrets(u, nil)
		for _, got := range []string{redactURL(u), s.header("Authorization", req.Header.Get("Authorization")), s.header("location", u.String())} {
			if !utf8.ValidString(got) {
				t.Errorf("%q is not UTF-8", got)
			}
			for _, secret := range []string{password, url.QueryEscape(password), strings.TrimPrefix(req.Header.Get("Authorization"), "Basic ")} {
				if strings.Contains(got, secret) && !strings.Contains(path, secret) {
					t.Errorf("%q shows %q", got, secret)
				}
			}
		}
	})
}

// FuzzMediaType checks that any Content-Type gives valid text.
func FuzzMediaType(f *testing.F) {
	f.Add("text/html; charset=utf-8")
	f.Add("a\xff/b; charset=\"\\\xff\"")
	f.Fuzz(func(t *testing.T, v string) {
		mime, charset := mediaType(v)
		if !utf8.ValidString(mime) || !utf8.ValidString(charset) || strings.Contains(mime, ";") {
			t.Errorf("%q: %q %q", v, mime, charset)
		}
	})
}
