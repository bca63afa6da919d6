package subjects

import (
	"reflect"
	"testing"
)

// TestLimitsDefaults shows that every field has a default, that zero and less mean it, and that other values stay.
func TestLimitsDefaults(t *testing.T) {
	d := DefaultLimits()
	if got := (Limits{}).WithDefaults(); got != d {
		t.Errorf("zero limits become %+v", got)
	}
	if got := d.WithDefaults(); got != d {
		t.Errorf("the defaults become %+v", got)
	}
	v := reflect.ValueOf(d)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if v.Field(i).Int() <= 0 {
			t.Errorf("%s has no default", name)
		}
		for set, want := range map[int64]int64{-1: v.Field(i).Int(), 7: 7} {
			var l Limits
			reflect.ValueOf(&l).Elem().Field(i).SetInt(set)
			l = l.WithDefaults()
			if got := reflect.ValueOf(l).Field(i).Int(); got != want {
				t.Errorf("%s of %d becomes %d, want %d", name, set, got, want)
			}
		}
	}
	if d.FrameRecords > maxFrameRecords || d.FrameBytes > maxFrameBytes {
		t.Error("producers make frames that readers refuse")
	}
	if d.BodyChunkBytes >= 1<<20 || int64(d.BodyQueueBytes) < d.RequestBodyBytes+d.ResponseBodyBytes {
		t.Error("a chunk does not fit a message, or one request's bodies not their queue")
	}
}
