package subjects

import (
	"errors"
	"reflect"
	"testing"
)

// chunkCase is one line of bodychunks.json.
type chunkCase struct {
	Name    string            `json:"name"`
	Headers map[string]string `json:"headers"`
	Chunk   struct {
		Offset int64  `json:"offset"`
		End    string `json:"end"`
		Total  int64  `json:"total"`
	} `json:"chunk"`
	// Error is "frame" or "version" where readers refuse it.
	Error string `json:"error"`
}

func TestBodyChunkVectors(t *testing.T) {
	for _, c := range golden[chunkCase](t, "bodychunks.json") {
		t.Run(c.Name, func(t *testing.T) {
			h := headerOf(c.Headers)
			got, err := ParseBodyChunk(h)
			want := map[string]error{"": nil, "frame": ErrFrame, "version": ErrVersion}[c.Error]
			if !errors.Is(err, want) || (err == nil) != (want == nil) {
				t.Fatalf("the error is %v, want %v", err, want)
			}
			if err != nil {
				return
			}
			if got != BodyChunk(c.Chunk) {
				t.Errorf("got %+v, want %+v", got, c.Chunk)
			}
			if again := got.Header(); !reflect.DeepEqual(again, h) {
				t.Errorf("the headers became %v", again)
			}
		})
	}
}
