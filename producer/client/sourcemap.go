package client

import (
	"bytes"
	"encoding/json"
)

// sourceMap says, line for line, where the lines of a part come from. All of it is
// on the ignore list: the place of a console call that a browser's own DevTools
// shows is then the page's, not the one in natscope that passed the call on.
type sourceMap struct {
	Version    int      `json:"version"`
	Sources    []string `json:"sources"`
	Names      []string `json:"names"`
	IgnoreList []int    `json:"ignoreList"`
	Mappings   mappings `json:"mappings"`
}

// mappings is the text of a map's mappings, as far as it is made.
type mappings struct {
	text         bytes.Buffer
	source, line int
}

// line adds a line of the file, which comes from a line of a source; a negative
// source means from nowhere. Both count from 0.
func (m *sourceMap) line(source, line int) {
	x := &m.Mappings
	if source >= 0 {
		vlq(&x.text, 0)
		vlq(&x.text, source-x.source)
		vlq(&x.text, line-x.line)
		vlq(&x.text, 0)
		x.source, x.line = source, line
	}
	x.text.WriteByte(';')
}

func (x mappings) MarshalJSON() ([]byte, error) { return json.Marshal(x.text.String()) }

// vlq writes a number as source maps do: six bits a letter, the least first, the sign in the lowest.
func vlq(b *bytes.Buffer, n int) {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	v := uint(n) << 1
	if n < 0 {
		v = uint(-n)<<1 | 1
	}
	for {
		d := v & 31
		if v >>= 5; v > 0 {
			d |= 32
		}
		b.WriteByte(letters[d])
		if v == 0 {
			return
		}
	}
}
