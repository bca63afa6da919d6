package producer

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/natscope/natscope/subjects"
)

// FuzzLine checks that whatever is recorded, readers accept the frame.
func FuzzLine(f *testing.F) {
	f.Add(1.5, "message", []byte(`{"a":1}`))
	f.Add(math.NaN(), "", []byte(nil))
	f.Add(math.Inf(1), "a\"\\\n\xff", []byte("{\n\"a\":\n1}"))
	f.Add(-0.0004, strings.Repeat("x", 1000), []byte("\"\xff\""))
	f.Add(1e300, "t", []byte(`1,"topic":"x"`))
	f.Fuzz(func(t *testing.T, at float64, topic string, data []byte) {
		q := newQueue(subjects.PlaneConsole, dropOldest, subjects.DefaultLimits())
		given := string(data)
		if len(data) > 0 {
			data = clean(data)
		}
		q.push(at, cleanTopic(topic), data)
		if len(given) > 0 && string(given) != string(data) && json.Valid([]byte(given)) && utf8.ValidString(given) && depth([]byte(given)) <= maxJSONDepth {
			t.Fatalf("valid data %q became %q", given, data)
		}
		fr := q.take(1 << 20)
		h, body := subjects.EncodeFrame(subjects.FrameInfo{Seq: 1, Count: fr.len()}, fr.body)
		got, err := subjects.DecodeFrame(h, body)
		if err != nil {
			t.Fatalf("%q: %v", fr.body, err)
		}
		if !utf8.Valid(fr.body) {
			t.Fatalf("%q is not UTF-8", fr.body)
		}
		r := got.Records[0]
		if topic != "" && len(topic) <= maxTopic && utf8.ValidString(topic) && r.Topic != topic {
			t.Fatalf("topic %q became %q", topic, r.Topic)
		}
		if math.Abs(at) < 1e12 && math.Abs(r.T-at) > 0.00051 {
			t.Fatalf("time %v became %v", at, r.T)
		}
		if m := fr.marks[0]; len(data) > 0 && string(fr.body[m.data:len(fr.body)-2]) != strings.ReplaceAll(string(data), "\n", " ") {
			t.Fatalf("the data are not where the mark says: %q", fr.body[m.data:])
		}
	})
}

func TestReplaced(t *testing.T) {
	for s, want := range map[string]bool{
		"": false, "plain": false, "a\xffb": true, `\ufffd`: false, `\\ufffd`: false, "\uFFFD": false, "\\\xff": true, "\"\\": false,
	} {
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := replaced(data) >= 0; got != want {
			t.Errorf("%q as %s: %v", s, data, got)
		}
	}
}

// TestEncodeWhatNobodyReads: encoding/json writes deeper values than it reads,
// and passes on bytes that no reader takes; a record of either would be lost for all.
func TestEncodeWhatNobodyReads(t *testing.T) {
	nested := func(levels int) any {
		var v any = strings.Repeat("[{", 2*maxJSONDepth)
		for range levels {
			v = []any{v}
		}
		return v
	}
	for levels, want := range map[int]bool{1: true, maxJSONDepth: true, maxJSONDepth + 1: false, 20 * maxJSONDepth: false} {
		s := scratches.Get().(*scratch)
		data, err := s.encode(nested(levels))
		if (err == nil) != want {
			t.Errorf("%d levels: %.100s, %v", levels, data, err)
		}
		s.free()
	}
	for text, want := range map[string]bool{`"a"`: false, "\"a\xff\"": true} {
		s := scratches.Get().(*scratch)
		if data, err := s.encode(json.RawMessage(text)); err != nil || s.repaired != want || !utf8.Valid(data) {
			t.Errorf("%q: %q, repaired %v, %v", text, data, s.repaired, err)
		}
		s.free()
	}
}

func TestCutText(t *testing.T) {
	for _, s := range []string{"", "abc", "äöü", "日本語日本語", "\xff\xff\xff\xff\xff", "a\x80\x80\x80\x80\x80\x80", "😀😀😀"} {
		for limit := range 14 {
			got := cutText(s, limit)
			if !utf8.ValidString(got) {
				t.Errorf("cutText(%q, %d) = %q", s, limit, got)
			}
			if utf8.ValidString(s) && (len(got) > limit || !strings.HasPrefix(s, got) || limit >= len(s) && got != s || len(got)+utf8.UTFMax <= limit && got != s) {
				t.Errorf("cutText(%q, %d) = %q", s, limit, got)
			}
		}
	}
}

func TestGenerationsIncrease(t *testing.T) {
	now := time.Now()
	last := subjects.Generation("")
	for i := range 2000 {
		// The clock stands, and then steps back.
		g := generations.next(now.Add(-time.Duration(i) * time.Second))
		if g <= last || !subjects.IsToken(string(g)) || len(g) != 26 {
			t.Fatalf("%s after %s", g, last)
		}
		last = g
	}
}
