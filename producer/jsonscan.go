package producer

// maxJSONDepth is how deeply the data of a record may nest. Readers give up at ten times this.
const maxJSONDepth = 1000

// validJSON reports whether b is exactly one JSON value that nests at most
// maxJSONDepth levels. It is the fast path's own check since the one in
// encoding/json takes several times as long; a fuzz test keeps both in step.
// Like that one it does not look at the encoding of strings.
func validJSON(b []byte) bool {
	i := scanValue(b, skipSpace(b, 0), maxJSONDepth)
	return i >= 0 && skipSpace(b, i) == len(b)
}

// stringByte tells which bytes stand for themselves inside a string.
var stringByte = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return t
}()

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// scanValue returns the place behind the value that begins at i, or -1.
func scanValue(b []byte, i, depth int) int {
	if i >= len(b) || depth < 0 {
		return -1
	}
	switch c := b[i]; {
	case c == '"':
		return scanString(b, i+1)
	case c == '{':
		return scanObject(b, i+1, depth-1)
	case c == '[':
		return scanArray(b, i+1, depth-1)
	case c == '-' || c >= '0' && c <= '9':
		return scanNumber(b, i)
	case c == 't':
		return scanWord(b, i, "true")
	case c == 'f':
		return scanWord(b, i, "false")
	case c == 'n':
		return scanWord(b, i, "null")
	}
	return -1
}

func scanWord(b []byte, i int, word string) int {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

// scanString begins behind the opening quote.
func scanString(b []byte, i int) int {
	for i < len(b) {
		for i < len(b) && stringByte[b[i]] {
			i++
		}
		if i >= len(b) {
			return -1
		}
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			if i = scanEscape(b, i+1); i < 0 {
				return -1
			}
		default:
			return -1
		}
	}
	return -1
}

// scanEscape begins behind the backslash.
func scanEscape(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		if len(b)-i < 5 {
			return -1
		}
		for _, c := range b[i+1 : i+5] {
			if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
				return -1
			}
		}
		return i + 5
	}
	return -1
}

func scanNumber(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	switch {
	case i >= len(b):
		return -1
	case b[i] == '0':
		i++
	default:
		if i = scanDigits(b, i); i < 0 {
			return -1
		}
	}
	if i < len(b) && b[i] == '.' {
		if i = scanDigits(b, i+1); i < 0 {
			return -1
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return scanDigits(b, i)
	}
	return i
}

func scanDigits(b []byte, i int) int {
	from := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	if i == from {
		return -1
	}
	return i
}

// scanArray begins behind the bracket.
func scanArray(b []byte, i, depth int) int {
	if i = skipSpace(b, i); i < len(b) && b[i] == ']' {
		return i + 1
	}
	for {
		if i = scanValue(b, skipSpace(b, i), depth); i < 0 {
			return -1
		}
		if i = skipSpace(b, i); i >= len(b) {
			return -1
		}
		switch b[i] {
		case ']':
			return i + 1
		case ',':
			i++
		default:
			return -1
		}
	}
}

// scanObject begins behind the brace.
func scanObject(b []byte, i, depth int) int {
	if i = skipSpace(b, i); i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		if i = skipSpace(b, i); i >= len(b) || b[i] != '"' {
			return -1
		}
		if i = scanString(b, i+1); i < 0 {
			return -1
		}
		if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
			return -1
		}
		if i = scanValue(b, skipSpace(b, i+1), depth); i < 0 {
			return -1
		}
		if i = skipSpace(b, i); i >= len(b) {
			return -1
		}
		switch b[i] {
		case '}':
			return i + 1
		case ',':
			i++
		default:
			return -1
		}
	}
}
