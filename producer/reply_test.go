package producer

import (
	"fmt"
	"testing"
)

func wrong(n int) string {
	return fmt.Sprintf(`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: %d"},"stream":"S","seq":0}`, n)
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name    string
		r       reply
		last    uint64
		verdict verdict
		seq     uint64
	}{
		{"acknowledged", reply{data: []byte(`{"stream":"S","seq":7}`)}, 5, stored, 7},
		{"no responders", reply{noResponders: true}, 5, again, 0},
		{"empty", reply{}, 5, again, 0},
		{"not JSON", reply{data: []byte(`{`)}, 5, again, 0},
		{"no sequence", reply{data: []byte(`{}`)}, 5, again, 0},
		{"stored, acknowledgement lost", reply{data: []byte(wrong(9))}, 5, storedBefore, 9},
		{"first one stored, acknowledgement lost", reply{data: []byte(wrong(9))}, 0, storedBefore, 9},
		{"evicted", reply{data: []byte(wrong(0))}, 5, evicted, 0},
		{"rolled back", reply{data: []byte(wrong(3))}, 5, rolledBack, 3},
		{"nothing wrong with it", reply{data: []byte(wrong(5))}, 5, again, 0},
		{"nothing was there", reply{data: []byte(wrong(0))}, 0, again, 0},
		{"no number", reply{data: []byte(`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence"}}`)}, 5, again, 0},
		{"something in flight", reply{data: []byte(`{"error":{"code":400,"err_code":10164,"description":"wrong last sequence"}}`)}, 5, again, 0},
		{"too large", reply{data: []byte(`{"error":{"code":400,"err_code":10054,"description":"message size exceeds maximum allowed"}}`)}, 5, tooLarge, 0},
		{"busy", reply{data: []byte(`{"error":{"code":429,"err_code":10167,"description":"too many requests"}}`)}, 5, again, 0},
		{"unknown", reply{data: []byte(`{"error":{"code":503,"err_code":99999}}`)}, 5, again, 0},
	} {
		v, seq, err := judge(c.r, c.last)
		if v != c.verdict || seq != c.seq {
			t.Errorf("%s: verdict %d with %d, want %d with %d", c.name, v, seq, c.verdict, c.seq)
		}
		if (err == nil) != (v == stored || v == storedBefore) {
			t.Errorf("%s: error %v", c.name, err)
		}
	}
}

func FuzzJudge(f *testing.F) {
	f.Add([]byte(`{"stream":"S","seq":7}`), uint64(5))
	f.Add([]byte(wrong(9)), uint64(5))
	f.Add([]byte(`{"error":null,"seq":-1}`), uint64(0))
	f.Fuzz(func(t *testing.T, data []byte, last uint64) {
		v, seq, err := judge(reply{data: data}, last)
		switch v {
		case stored, storedBefore:
			if seq == 0 || err != nil {
				t.Fatalf("stored at %d: %v", seq, err)
			}
		case rolledBack:
			if seq == 0 || seq >= last {
				t.Fatalf("rolled back to %d from %d", seq, last)
			}
		case evicted, tooLarge, again:
			if err == nil {
				t.Fatalf("verdict %d without a reason", v)
			}
		default:
			t.Fatalf("verdict %d", v)
		}
	})
}
