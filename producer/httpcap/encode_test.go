package httpcap

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/natscope/natscope/subjects/network"
)

// fill sets every field below v to a value that depends on n, so that a field
// which the encoder does not know shows as a difference.
func fill(v reflect.Value, s string, n int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n))
	case reflect.Float64:
		v.SetFloat(float64(n) / 1000)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), s, n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), fmt.Sprint(s, i), n+i)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), s, n+i)
		}
	default:
		panic("the test cannot fill a " + v.Kind().String())
	}
}

// same encodes a payload and reads it back.
func same[T any](t *testing.T, name string, want T, encode func(*encoder)) {
	t.Helper()
	e := newEncoder()
	defer e.free()
	encode(e)
	var got T
	if err := json.Unmarshal(e.b, &got); err != nil {
		t.Fatalf("%s: %v in %s", name, err, e.b)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, want %+v, from %s", name, got, want, e.b)
	}
	if !utf8.Valid(e.b) {
		t.Errorf("%s: not UTF-8: %q", name, e.b)
	}
}

func checkAll(t *testing.T, s string, n int) {
	t.Helper()
	var start network.Start
	fill(reflect.ValueOf(&start).Elem(), s, n)
	var stack []*frame
	for _, f := range start.Stack {
		e := encoder{}
		e.frame(f)
		stack = append(stack, &frame{json: e.b})
	}
	same(t, "start", start, func(e *encoder) { e.start(&start, stack) })

	var bodyEnd network.BodyEnd
	fill(reflect.ValueOf(&bodyEnd).Elem(), s, n)
	same(t, "requestBodyEnd", bodyEnd, func(e *encoder) { e.bodyEnd(&bodyEnd) })

	var response network.Response
	fill(reflect.ValueOf(&response).Elem(), s, n)
	same(t, "response", response, func(e *encoder) { e.response(&response) })

	var data network.DataReceived
	fill(reflect.ValueOf(&data).Elem(), s, n)
	same(t, "dataReceived", data, func(e *encoder) { e.dataReceived(&data) })

	var message network.Message
	fill(reflect.ValueOf(&message).Elem(), s, n)
	same(t, "message", message, func(e *encoder) { e.message(&message) })

	var end network.End
	fill(reflect.ValueOf(&end).Elem(), s, n)
	same(t, "end", end, func(e *encoder) { e.end(&end) })

	var failure network.Error
	fill(reflect.ValueOf(&failure).Elem(), s, n)
	same(t, "error", failure, func(e *encoder) { e.failure(&failure) })
}

// TestEncoderKnowsEveryField fails when a payload gets a field that the encoder does not write.
func TestEncoderKnowsEveryField(t *testing.T) {
	checkAll(t, "x", 7)
	checkAll(t, "<a href=\"b\">\\ \x00\n\u2028 ž €\U0001f600", 1<<40)
}

func TestEncoderLeavesOutWhatIsZero(t *testing.T) {
	for _, c := range []struct {
		v      any
		encode func(*encoder)
	}{
		{network.Start{ID: "a", Method: "GET", URL: "u"}, func(e *encoder) { e.start(&network.Start{ID: "a", Method: "GET", URL: "u"}, nil) }},
		{network.Response{ID: "a"}, func(e *encoder) { e.response(&network.Response{ID: "a"}) }},
		{network.BodyEnd{ID: "a"}, func(e *encoder) { e.bodyEnd(&network.BodyEnd{ID: "a"}) }},
		{network.DataReceived{ID: "a"}, func(e *encoder) { e.dataReceived(&network.DataReceived{ID: "a"}) }},
		{network.Message{ID: "a"}, func(e *encoder) { e.message(&network.Message{ID: "a"}) }},
		{network.End{ID: "a"}, func(e *encoder) { e.end(&network.End{ID: "a"}) }},
		{network.Error{ID: "a"}, func(e *encoder) { e.failure(&network.Error{ID: "a"}) }},
	} {
		want, err := json.Marshal(c.v)
		if err != nil {
			t.Fatal(err)
		}
		e := newEncoder()
		c.encode(e)
		if string(e.b) != string(want) {
			t.Errorf("got %s, want %s", e.b, want)
		}
		e.free()
	}
}

// FuzzEncode holds the encoder to what encoding/json reads back, for any bytes.
func FuzzEncode(f *testing.F) {
	f.Add("plain", 1)
	f.Add("\xff\xfe \"quoted\" \\ \x7f", -1)
	f.Fuzz(func(t *testing.T, s string, n int) {
		// The payloads' text has passed through text, which makes it UTF-8.
		s = text(s)
		if !utf8.ValidString(s) {
			t.Fatalf("text gives %q", s)
		}
		if s == "" {
			s = "s"
		}
		checkAll(t, s, 1+(n&0xffff))
	})
}
