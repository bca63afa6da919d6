package v8

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The bounds of one event of a session.
const (
	// largeEvent is from where on an event may be too long to be sent.
	largeEvent = 900 << 10
	// maxText is how much is left of a long string in such an event, in bytes; if it is still too long, less.
	maxText = 100_000
	// maxFrameBytes is how many bytes of frames a pause is told with. A pause must
	// be told: whoever debugs could not resume what he does not know to be paused.
	maxFrameBytes = 500 << 10
)

// fit makes an event of the engine short enough to be sent, by leaving out what
// can be had otherwise or what nobody reads.
func fit(method string, params json.RawMessage) json.RawMessage {
	if len(params) <= largeEvent {
		return params
	}
	switch method {
	case "Debugger.scriptParsed", "Debugger.scriptFailedToParse":
		params = mapApart(params)
	case "HeapProfiler.addHeapSnapshotChunk":
		return params // A snapshot that is cut is none.
	}
	for most := maxText; len(params) > largeEvent && most > 100; most /= 10 {
		params = cutStrings(params, most)
		if method == "Debugger.paused" && len(params) > largeEvent {
			params = topFrames(params)
		}
	}
	return params
}

// timed gives a message of the console the time of now if it has none, as those of
// Deno: DevTools puts messages in the order of their times.
func timed(method string, params json.RawMessage) json.RawMessage {
	const none = `"timestamp":0`
	if method != "Runtime.consoleAPICalled" && method != "Runtime.exceptionThrown" {
		return params
	}
	i := bytes.Index(params, []byte(none+",")) // In a string its quotes would be escaped.
	if i < 0 {
		return params
	}
	out := append(make([]byte, 0, len(params)+16), params[:i+len(none)-1]...)
	out = strconv.AppendFloat(out, nowMillis(), 'f', 3, 64)
	return append(out, params[i+len(none):]...)
}

// mapApart puts a short address in the place of a source map that a script has inside.
func mapApart(params json.RawMessage) json.RawMessage {
	var m map[string]json.RawMessage
	var id, address string
	if json.Unmarshal(params, &m) != nil || json.Unmarshal(m["scriptId"], &id) != nil || json.Unmarshal(m["sourceMapURL"], &address) != nil || !strings.HasPrefix(address, "data:") {
		return params
	}
	m["sourceMapURL"], _ = json.Marshal(insideMap + id)
	out, err := json.Marshal(m)
	if err != nil {
		return params
	}
	return out
}

// topFrames leaves of a deep stack what is at its top.
func topFrames(params json.RawMessage) json.RawMessage {
	var m map[string]json.RawMessage
	var frames []json.RawMessage
	if json.Unmarshal(params, &m) != nil || json.Unmarshal(m["callFrames"], &frames) != nil {
		return params
	}
	size := 0
	for i, f := range frames {
		if size += len(f); size > maxFrameBytes && i > 0 {
			frames = frames[:i]
			break
		}
	}
	m["callFrames"], _ = json.Marshal(frames)
	out, err := json.Marshal(m)
	if err != nil {
		return params
	}
	return out
}

// cutStrings returns JSON in which no string has many more bytes than most.
func cutStrings(in json.RawMessage, most int) json.RawMessage {
	var out []byte
	rest := []byte(in)
	for {
		from := bytes.IndexByte(rest, '"')
		if from < 0 {
			return append(out, rest...)
		}
		end := from + 1
		for end < len(rest) && rest[end] != '"' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(rest) {
			return append(out, rest...)
		}
		if n := end - from - 1; n > most+100 {
			text := rest[from+1 : end]
			out = append(append(out, rest[:from+1]...), text[:boundary(text, most)]...)
			out = fmt.Appendf(out, `… (%d bytes in all)"`, n)
		} else {
			out = append(out, rest[:end+1]...)
		}
		rest = rest[end+1:]
	}
}

// boundary is the last place up to most where a JSON string can be cut: in no
// escape, no pair of surrogates and no character.
func boundary(text []byte, most int) int {
	last := 0
	for i := 0; i < most; {
		last = i
		switch {
		case text[i] == '\\' && i+6 < len(text) && text[i+1] == 'u':
			i += 6
			if text[i-4]|0x20 == 'd' && text[i-3] >= '8' && i+6 < len(text) && text[i] == '\\' && text[i+1] == 'u' {
				i += 6
			}
		case text[i] == '\\':
			i += 2
		default:
			_, size := utf8.DecodeRune(text[i:])
			i += size
		}
	}
	return last
}
