package repl

import (
	"errors"
	"fmt"
)

// ErrDepth says that a source is nested too deeply. A parser and a compiler that
// call themselves for each level would run out of stack, which nothing contains.
var ErrDepth = errors.New("the source is nested too deeply")

// The bounds of sources.
const (
	// MaxDepth is how deep brackets may be nested, and how many operators may follow one another.
	MaxDepth = 1000
	// MaxChain is how many parts an expression, or a statement without braces, may have.
	MaxChain = 20_000
	// MaxSource is the most bytes of a source.
	MaxSource = 1 << 20
)

// CheckDepth refuses sources that are nested too deeply. It knows nothing of
// strings and comments: brackets in them count too, which is why they count as
// closed again wherever there are that many closing ones.
func CheckDepth(src string) error {
	if len(src) > MaxSource {
		return fmt.Errorf("%w: it has %d bytes, at most %d are run", ErrDepth, len(src), MaxSource)
	}
	depth, run, chain := 0, 0, 0
	var open [MaxDepth + 1]byte
	for i := 0; i < len(src); i++ {
		switch c := src[i]; c {
		case '(', '[', '{':
			if depth++; depth > MaxDepth {
				return fmt.Errorf("%w: more than %d brackets inside of one another", ErrDepth, MaxDepth)
			}
			open[depth] = c
			run++
		case ')', ']', '}':
			depth = max(depth-1, 0)
			run = 0
		case ' ', '\t', '\n', '\r':
		case ';':
			// Those in the head of a loop end no statement.
			if open[depth] != '(' {
				run, chain = 0, 0
			}
		case '!', '~', '+', '-', '=', '>', '?', ':', '.', ',', '*', '/', '%', '&', '|', '^', '<', '`', '$':
			run++
			chain++
		default:
			if word := wordAt(src, i); word > 0 {
				// Words such as typeof, new, if, else and await nest without any bracket.
				if isNesting(src[i : i+word]) {
					run++
					chain++
				} else {
					run = 0
				}
				i += word - 1
			} else {
				run = 0
			}
		}
		if run > MaxDepth || chain > MaxChain {
			return fmt.Errorf("%w: an expression of too many parts", ErrDepth)
		}
	}
	return nil
}

// wordAt returns the length of the word that begins at i.
func wordAt(src string, i int) int {
	n := 0
	for i+n < len(src) && (src[i+n] >= 'a' && src[i+n] <= 'z' || src[i+n] >= 'A' && src[i+n] <= 'Z' || src[i+n] == '_' || src[i+n] >= '0' && src[i+n] <= '9' || src[i+n] >= 0x80) {
		n++
	}
	return n
}

func isNesting(word string) bool {
	switch word {
	case "typeof", "void", "delete", "new", "await", "async", "yield", "if", "else", "for", "while", "do", "with", "return", "throw", "in", "of", "instanceof", "case", "function", "class", "extends":
		return true
	}
	return false
}
