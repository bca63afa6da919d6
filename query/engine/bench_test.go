package engine

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/subjects"
)

// BenchmarkSources lists 1000 sources: the answer alone, and with its JSON.
func BenchmarkSources(b *testing.B) {
	m := newMemory(b, subjects.Limits{})
	for i := range 1000 {
		p := m.open(subjects.SourceID(fmt.Sprint("s", i)))
		p.tree(1, 10)
		for k := range 20 {
			p.log("log", k)
		}
		for k := range 5 {
			p.call(fmt.Sprint("r", k), "http://x/", 200)
		}
	}
	e := newEngine(b, m)
	b.Run("answer", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			must(b, e.Sources, query.SourcesRequest{})
		}
	})
	a := must(b, e.Sources, query.SourcesRequest{})
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			if _, err := json.Marshal(a); err != nil {
				b.Fatal(err)
			}
		}
	})
	data, _ := json.Marshal(a)
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			var x query.SourcesAnswer
			if err := json.Unmarshal(data, &x); err != nil {
				b.Fatal(err)
			}
		}
	})
}
