package subjects_test

import (
	"fmt"

	"github.com/natscope/natscope/subjects"
)

// A consumer of one's own reads what programs publish without anything else of
// natscope: m is a message on a subject that RecordsOf matches.
func ExampleDecodeFrame() {
	type message struct {
		Subject string
		Header  map[string][]string
		Data    []byte
	}
	m := message{
		Subject: "natscope.dev.rec.orders-1.01hxabc.event.cache.miss",
		Header:  map[string][]string{"Natscope-Version": {"1"}, "Natscope-Seq": {"7"}, "Natscope-Count": {"2"}},
		Data:    []byte(`{"t":12.5,"topic":"cache.miss","data":{"key":"kettle"}}` + "\n" + `{"t":12.9,"topic":"cache.miss","data":{"key":"mug"}}` + "\n"),
	}
	name, err := subjects.ParseRecord(m.Subject)
	if err != nil {
		fmt.Println(err)
		return
	}
	frame, err := subjects.DecodeFrame(m.Header, m.Data)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, r := range frame.Records {
		fmt.Println(name.Source, name.Plane, int(frame.Seq)+i, r.Topic, string(r.Data))
	}
	// Output:
	// orders-1 event 7 cache.miss {"key":"kettle"}
	// orders-1 event 8 cache.miss {"key":"mug"}
}
